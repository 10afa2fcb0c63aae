// SPDX-License-Identifier: Apache-2.0

// The discovery server sends Envoys their routes, and what goes with them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	profiled := profile(os.Getenv)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	profiled()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
