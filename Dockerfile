# A static binary that runs as nobody.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /strandline ./cmd/strandline && mkdir -p /var/lib/strandline

FROM scratch
COPY --from=build /strandline /strandline
COPY --from=build --chown=65534:65534 /var/lib/strandline /var/lib/strandline
USER 65534:65534
VOLUME ["/var/lib/strandline"]
EXPOSE 8420
ENTRYPOINT ["/strandline"]
