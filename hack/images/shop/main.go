// SPDX-License-Identifier: Apache-2.0

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
	c, err := configFrom(os.Getenv, os.Hostname)
	if err == nil {
		err = run(ctx, c, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "shop: %v\n", err)
		os.Exit(1)
	}
}
