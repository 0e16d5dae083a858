//go:build unix

package pgserver

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeApt stands for apt-get: it notes what it was asked, and "installs" a server. The
// package lists are missing until an update.
const fakeApt = `#!/bin/sh
echo "$DEBIAN_FRONTEND $*" >>"DIR/asked"
case "$*" in
*update*) touch DIR/lists ;;
*postgresql-common*) [ -e DIR/lists ] || { echo "E: Unable to locate package"; exit 100; }; mkdir -p DIR/etc ;;
*)
	grep -q "^create_main_cluster = false" DIR/etc/createcluster.conf || exit 1
	for v in 9 15; do
		mkdir -p DIR/versions/$v/bin
		for p in initdb postgres pg_basebackup; do touch DIR/versions/$v/bin/$p; done
	done ;;
esac
`

func fakePlace(t *testing.T, apt string) (place, string) {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "apt-get")
	if err := os.WriteFile(script, []byte(strings.ReplaceAll(apt, "DIR", dir)), 0o755); err != nil {
		t.Fatal(err)
	}
	return place{
		versions: filepath.Join(dir, "versions"), pgConfig: filepath.Join(dir, "no-pg_config"), apt: script,
		lock: filepath.Join(dir, "lock"), cluster: filepath.Join(dir, "etc", "createcluster.conf"),
	}, dir
}

// TestInstall: whoever asks at the same time waits for one installation; Debian is told
// to start no server, before it would; of two versions the newer is taken.
func TestInstall(t *testing.T) {
	if os.Geteuid() != 0 {
		p, _ := fakePlace(t, fakeApt)
		if _, err := p.programs(context.Background()); err == nil || !strings.Contains(err.Error(), "needs root") {
			t.Fatalf("an ordinary user installs packages: %v", err)
		}
		return
	}
	p, dir := fakePlace(t, fakeApt)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			bin, err := p.programs(context.Background())
			if err != nil || bin != filepath.Join(dir, "versions", "15", "bin") {
				t.Errorf("%q %v", bin, err)
			}
		})
	}
	wg.Wait()
	asked, err := os.ReadFile(filepath.Join(dir, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(asked)), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "noninteractive ") || !strings.Contains(lines[1], "update") || !strings.HasSuffix(lines[3], "install postgresql") {
		t.Fatalf("apt-get was asked %q", lines)
	}
}

// TestInstallFails: the error says what was tried and what to do.
func TestInstallFails(t *testing.T) {
	broken, _ := fakePlace(t, "#!/bin/sh\necho E: no network; exit 100\n")
	none, _ := fakePlace(t, "")
	none.apt = "no-such-program"
	for name, c := range map[string]struct {
		p    place
		want []string
	}{
		"apt-get fails": {broken, []string{"by hand"}},
		"no Debian":     {none, []string{"no Debian", "by hand"}},
	} {
		_, err := c.p.programs(context.Background())
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v; it does not say %q", name, err, want)
			}
		}
	}
}

// TestPgConfig: where others put the programs.
func TestPgConfig(t *testing.T) {
	p, dir := fakePlace(t, "")
	bin := filepath.Join(dir, "opt")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres", "pg_basebackup"} {
		if err := os.WriteFile(filepath.Join(bin, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(p.pgConfig, []byte("#!/bin/sh\necho "+bin+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := p.programs(context.Background()); err != nil || got != bin {
		t.Fatalf("%q %v", got, err)
	}
}
