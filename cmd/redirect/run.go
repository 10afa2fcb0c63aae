// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/internal/buildinfo"
	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect"
	"github.com/plumbline-dev/plumbline/pkg/traffic/redirect/netfilter"
)

// patience is for a kernel that loads modules at the first question.
const patience = 30 * time.Second

// errDiffers is the answer of --check.
var errDiffers = errors.New("checking the rules: the present rules differ from the wanted ones; without --check they are set")

// run sets the rules and tells them, or with --check tells what there is.
func run(ctx context.Context, args []string, out io.Writer) error {
	if answered, err := buildinfo.PrintVersion(args, "redirect", out); answered {
		return err
	}
	config, check, err := parse(args, out)
	if err != nil {
		return err
	}
	want, err := redirect.Rules(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if check {
		return compare(ctx, want, out)
	}
	if err := netfilter.Apply(ctx, want); err != nil {
		return err
	}
	return tell(out, want.String())
}

func parse(args []string, out io.Writer) (redirect.Config, bool, error) {
	var config redirect.Config
	fs := flag.NewFlagSet("redirect", flag.ContinueOnError)
	// The error is told by whoever gets it, without a page of help around it.
	var page bytes.Buffer
	fs.SetOutput(&page)
	config.AddFlags(fs)
	check := fs.Bool("check", false, "set no rules: list the present ones, and fail if they differ")
	err := fs.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return config, false, errors.Join(err, tell(out, page.String()))
	case err != nil:
		return config, false, fmt.Errorf("reading the arguments: %w", err)
	case fs.NArg() > 0:
		return config, false, fmt.Errorf("reading the arguments: %q is no flag: take it out", strings.Join(fs.Args(), " "))
	}
	return config, *check, nil
}

func compare(ctx context.Context, want redirect.Ruleset, out io.Writer) error {
	got, exists, err := netfilter.Read(ctx)
	if err != nil {
		return err
	}
	text := got.String()
	if !exists {
		text = "# there is no table inet " + redirect.Table + "\n"
	}
	if err := tell(out, text); err != nil {
		return err
	}
	if text != want.String() {
		return errDiffers
	}
	return nil
}

func tell(out io.Writer, text string) error {
	if _, err := io.WriteString(out, text); err != nil {
		return fmt.Errorf("telling the rules: %w", err)
	}
	return nil
}
