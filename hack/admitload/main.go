// SPDX-License-Identifier: Apache-2.0

// Command admitload replays recorded admission reviews to a webhook on this
// machine at fixed rates, and prints what each rate cost.
//
//	admitload --target https://127.0.0.1:9443 --ca ca.crt --rates 100,1000 --pid 4711
//
// It measures from the moment each request was due, and drives loopback
// addresses only. See package replay.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/replay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "admitload: %v\n", err)
		os.Exit(1)
	}
}

type options struct {
	target, ca, records, rates string
	duration, warmup, timeout  time.Duration
	names, pid                 int
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var o options
	fs := flag.NewFlagSet("admitload", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.StringVar(&o.target, "target", "", "https://host:port of the webhook; a loopback address")
	fs.StringVar(&o.ca, "ca", "", "PEM file that verifies its certificate")
	fs.StringVar(&o.records, "records", "hack/admitload/testdata/reviews.ndjson", "recorded reviews")
	fs.StringVar(&o.rates, "rates", "100,500,1000,2000", "requests per second, one run each")
	fs.DurationVar(&o.duration, "duration", 10*time.Second, "of each run")
	fs.DurationVar(&o.warmup, "warmup", 2*time.Second, "before each run, not counted")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Second, "patience of the API server")
	fs.IntVar(&o.names, "names", 10000, "objects that the requests are about")
	fs.IntVar(&o.pid, "pid", 0, "process whose memory is shown; 0: none")
	if err := fs.Parse(args); err != nil {
		return err
	}
	cfg, err := o.config()
	if err != nil {
		return err
	}
	for text := range strings.SplitSeq(o.rates, ",") {
		if cfg.Rate, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("reading --rates: %w", err)
		}
		result, err := replay.Run(ctx, cfg)
		if err != nil {
			return err
		}
		line := result.String()
		if o.pid != 0 {
			now, peak, err := replay.ResidentBytes(o.pid)
			if err != nil {
				return err
			}
			line += fmt.Sprintf("  rss %d MiB (peak %d)", now>>20, peak>>20)
		}
		if _, err := fmt.Fprintln(stdout, line); err != nil {
			return err
		}
	}
	return nil
}

func (o *options) config() (replay.Config, error) {
	pem, err := os.ReadFile(o.ca)
	if err != nil {
		return replay.Config{}, fmt.Errorf("reading --ca: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return replay.Config{}, fmt.Errorf("reading --ca: no certificate in %s", o.ca)
	}
	file, err := os.Open(o.records)
	if err != nil {
		return replay.Config{}, fmt.Errorf("reading --records: %w", err)
	}
	defer func() { _ = file.Close() }()
	records, err := replay.Load(file)
	if err != nil {
		return replay.Config{}, err
	}
	return replay.Config{
		Target: o.target, Roots: roots, Records: records,
		Duration: o.duration, Warmup: o.warmup, Timeout: o.timeout, Names: o.names,
	}, nil
}
