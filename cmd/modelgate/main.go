// Command modelgate is the gateway and the operator's tools in one binary.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"modelgate/internal/cli"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		setTimerSlack()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// From the first signal on the next one ends the process as if it had not
	// been asked for: what is booked is in the spool, and the rest is replayed.
	context.AfterFunc(ctx, stop)
	env := &cli.Environment{Context: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Lookup: os.LookupEnv, Program: os.Args[0]}
	os.Exit(cli.Run(env, os.Args[1:]))
}
