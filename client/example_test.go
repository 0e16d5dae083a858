package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/strandline/strandline/client"
	"github.com/strandline/strandline/segment"
)

func Example() {
	server := exampleServer() // a writer: strandline up, or strandline writer
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, HTTP: http.DefaultClient})
	if err != nil {
		log.Fatal(err)
	}
	got, err := c.Append(ctx, "orders", []segment.Row{{Payload: []byte("one")}, {Payload: []byte("two")}}, client.AppendOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable from", got.FirstToken, "to", got.LastToken)
	for row, err := range c.Rows(ctx, "orders", client.ReadOptions{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s\n", row.Position(), row.Payload)
	}
	// Output:
	// durable from e1.t1.1 to e1.t1.2
	// e1.t1.1 one
	// e1.t1.2 two
}

// A follow goes on behind the tip, through restarts and takeovers, until the loop or ctx ends.
func ExampleClient_Rows_follow() {
	server := exampleServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	c, err := client.New(client.Config{URL: server.URL, HTTP: http.DefaultClient})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.Append(ctx, "orders", []segment.Row{{Payload: []byte("one")}}, client.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	for row, err := range c.Rows(ctx, "orders", client.ReadOptions{Follow: true}) {
		if err != nil {
			log.Fatal(err) // whatever it is, row.Position of the last row is where to go on
		}
		fmt.Printf("%s\n", row.Payload)
		break
	}
	// Output:
	// one
}

// What a server refused a request with is a *Problem; errors.Is tells its kind.
func ExampleProblem() {
	server := exampleServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	c, err := client.New(client.Config{URL: server.URL, HTTP: http.DefaultClient})
	if err != nil {
		log.Fatal(err)
	}
	for _, err := range c.Rows(context.Background(), "orders", client.ReadOptions{From: "1"}) {
		var p *client.Problem
		if errors.Is(err, client.ErrTrimmed) && errors.As(err, &p) {
			fmt.Println("rows below", *p.First, "were given up")
		}
	}
	// Output:
	// rows below 2 were given up
}

// A durable consumer acknowledges what it has dealt with: after a crash it gets the rest again.
func ExampleClient_Pull() {
	server := exampleServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	ctx := context.Background()
	c, err := client.New(client.Config{URL: server.URL, HTTP: http.DefaultClient})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Append(ctx, "orders", []segment.Row{{Payload: []byte("one")}, {Payload: []byte("two")}}, client.AppendOptions{}); err != nil {
		log.Fatal(err)
	}
	shard, done := segment.Chain{Shard: 0}, ""
	for row, err := range c.Pull(ctx, shard, "billing", 100) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("bill %s\n", row.Payload)
		done = row.Position()
	}
	k, err := c.Ack(ctx, shard, "billing", done)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("acknowledged up to", k.Cursor)
	// Output:
	// bill one
	// bill two
	// acknowledged up to 2
}

// A Batcher shares requests among goroutines that have a row each.
func ExampleBatcher() {
	server := exampleServer()
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()

	c, err := client.New(client.Config{URL: server.URL, HTTP: http.DefaultClient})
	if err != nil {
		log.Fatal(err)
	}
	b, err := c.NewBatcher(client.BatcherConfig{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	at, err := b.Append(context.Background(), "orders", segment.Row{Payload: []byte("one")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("durable at", at)
	// Output:
	// durable at e1.t1.1
}
