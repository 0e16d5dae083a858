//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/strandline/strandline/internal/realstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: toolbin minio|versitygw|collector|telemetrygen|golangci-lint|gofumpt|staticcheck")
		os.Exit(2)
	}
	path, err := realstore.Build(ctx, os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
}
