# A static binary that runs as nobody.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /strandline ./cmd/strandline
# /tmp is settle's spool; the certificates are for stores over TLS.
RUN mkdir -p /rootfs/tmp /rootfs/var/lib/strandline /rootfs/etc/ssl/certs \
	&& cp /etc/ssl/certs/ca-certificates.crt /rootfs/etc/ssl/certs/

FROM scratch
COPY --from=build /strandline /strandline
COPY --from=build --chown=65534:65534 /rootfs /
USER 65534:65534
VOLUME ["/var/lib/strandline"]
EXPOSE 8420 4317
ENTRYPOINT ["/strandline"]
