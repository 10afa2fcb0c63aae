// SPDX-License-Identifier: Apache-2.0

// Command kubectl-plumbline is the kubectl plugin, and the offline tool that
// hashes manifests. Everything it does is in internal/cli.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/internal/cli"
)

func main() {
	// Client libraries log what they also return: one error, said once.
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	env := cli.Environment{In: in, Out: out, Err: errOut, Now: time.Now, Version: buildinfo.Read().Version}
	return cli.Run(ctx, cli.Arguments(args), env)
}
