package deploycheck

// composeMistakes were each tried: none of them may pass.
func composeMistakes() []mutation {
	var out []mutation
	for _, m := range [][3]string{
		// Compose's own schema and references.
		{"stop_grace_period: 3m", "stop_grace_time: 3m", "stop_grace_time"},
		{"interval: 5s", "interval: soon", "interval"},
		{"name: strandline\n", "name: strandline\nname: again\n", "name"},
		{"condition: service_healthy", "condition: service_well", "condition"},
		{"postgres: {condition", "postgress: {condition", "postgress"},
		{`volumes: ["minio:/data"]`, `volumes: ["mini:/data"]`, "mini"},
		{"  bucket:\n", "  bucket:\n    depends_on: {auditor: {condition: service_healthy}}\n", "depends_on"},
		{"POSTGRES_DB: strandline", "POSTGRES_DB: $NAME", "$NAME is empty"},
		{"POSTGRES_DB: strandline", "POSTGRES_DB: ${NAME", "invalid interpolation format"},
		// What is waited for.
		{`test: ["CMD", "pg_isready"`, `test: ["NONE"] #`, "asks nothing"},
		{"    healthcheck:\n      test: [\"CMD\", \"mc\", \"ready\", \"local\"]\n      interval: 5s\n      timeout: 5s\n      retries: 20\n", "", "minio is healthy, which has no health check"},
		{"    entrypoint: [\"/bin/sh\", \"-c\"]\n", "    entrypoint: [\"/bin/sh\", \"-c\"]\n    restart: always\n", "bucket ends, which is started again"},
		{"bucket: {condition: service_completed_successfully}", "bucket: {condition: service_started}", "only waits"},
		{"    bucket: {condition: service_completed_successfully}\n", "", "does not wait for minio"},
		{"postgres: {condition: service_healthy}", "minio: {condition: service_healthy}", "does not wait for postgres"},
		// Images, ports, volumes.
		{"postgres:15.14-bookworm", "postgres", "is not pinned"},
		{"minio:RELEASE.2025-09-07T16-13-09Z", "minio:latest", "is not pinned"},
		{`"127.0.0.1:8421:8420"`, `"8421:8420"`, "beyond this machine"},
		{`"127.0.0.1:8421:8420"`, `"127.0.0.1:8421:8421"`, "publishes 8421"},
		{"  writer-1: {}\n", "  writer-1: {}\n  writer-2: {}\n", "volume writer-2 is mounted nowhere"},
		// What starts the product.
		{`command: ["auditor"]`, `command: ["audit"]`, "no command strandline audit"},
		{`"--shard-index=0"`, `"--shard-idx=0"`, "unknown flag"},
		{`"--shard-index=0"`, `"--shard-index=2"`, "shard-index"},
		{`"--shard-index=1"`, `"--shard-index=0"`, "has the --shard-index of"},
		{`"--shard-count=2"`, `"--shard-count=3"`, "--shard-count is 3 for 2 writers"},
		{"STRANDLINE_HTTP: ", "STRANDLINE_HTP: ", "STRANDLINE_HTP"},
		{"MINIO_ACCESS_KEY: ", "MINIO_ACCES_KEY: ", "nothing reads the variable MINIO_ACCES_KEY"},
		{`STRANDLINE_ALLOW_REMOTE: "true"`, `STRANDLINE_ALLOW_REMOTE: "yes please"`, "STRANDLINE_ALLOW_REMOTE"},
		{`    STRANDLINE_ALLOW_REMOTE: "true"` + "\n", "", "--http"},
		{"STRANDLINE_HTTP: 0.0.0.0:8420", "STRANDLINE_HTTP: 127.0.0.1:8420", "not reached from outside"},
		{"minio://minio:9000", "minio://mini:9000", "mini is no service"},
		{"@postgres:5432", "@database:5432", "database is no service"},
		{"PGPASSWORD: strandline-catalog", "PGPASSWORD: other", "POSTGRES_PASSWORD"},
		{"MINIO_SECRET_KEY: strandline-secret", "MINIO_SECRET_KEY: other", "MINIO_ROOT_PASSWORD"},
		{"stop_grace_period: 3m", "stop_grace_period: 2m", "is killed after 2m"},
		{`    command: ["auditor"]`, `    entrypoint: ["/bin/strandline"]` + "\n" + `    command: ["auditor"]`, "instead of the image's"},
		{`volumes: ["writer-1:/var/lib/strandline"]`, `volumes: ["writer-0:/var/lib/strandline", "writer-1:/mnt"]`, "has the volume of"},
		{`    volumes: ["writer-1:/var/lib/strandline"]` + "\n", "", "volume writer-1 is mounted nowhere"},
		{"writer-0:/var/lib/strandline", "writer-0:/var/lib/other", "is on no volume"},
		{"http://writer-0:8420", "http://writer-1:8420", "--advertise is"},
		// Its health.
		{`"/strandline", "ready"]`, `"/strandline", "status"]`, "`strandline ready`"},
		{`"/strandline", "ready"]`, `"/strandline", "ready", "--tiemout=1s"]`, "unknown flag"},
		{`"/strandline", "ready"]`, `"/strandline", "ready", "--server=http://127.0.0.1:8421"]`, "health is asked of"},
		{"timeout: 6s", "timeout: 5s", "health check is ended after 5s"},
	} {
		out = append(out, mutation{composeFile, m[0], m[1], m[2]})
	}
	return out
}
