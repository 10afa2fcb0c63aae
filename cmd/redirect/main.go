// SPDX-License-Identifier: Apache-2.0

// Command redirect sets the rules in a pod's network that send its outbound TCP to the
// proxy. It is the whole content of an image: static, without a shell.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	default:
		fmt.Fprintf(os.Stderr, "redirect: %v\n", err)
		os.Exit(1)
	}
}
