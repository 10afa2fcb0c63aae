// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// options are what the Makefile passes.
type options struct {
	cluster  string
	registry string
	name     string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	only := ""
	if len(args) > 0 && (args[0] == "images" || args[0] == "install") {
		only, args = args[0], args[1:]
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&o.cluster, "cluster", "local", "local: a cluster of its own; current: the one the kubeconfig points to")
	flags.StringVar(&o.registry, "registry", "", "registry to push the images to, for --cluster=current")
	flags.StringVar(&o.name, "name", "demo", "name of the local cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := o.validate(); err != nil {
		return err
	}
	n := newNarrator(out)
	if only == "images" {
		return justImages(ctx, n, o)
	}
	admin, images, err := prepare(ctx, n, o)
	if err != nil {
		return err
	}
	err = install(ctx, n, admin, images)
	if err == nil && only == "" {
		err = tell(ctx, n, admin, images, o)
	}
	if err != nil && o.cluster == "current" {
		n.brokenOff()
	}
	return err
}

// justImages serves `make images`: plain tags, for a chart that names them.
func justImages(ctx context.Context, n *narrator, o options) error {
	archives, err := buildImages(ctx, n)
	if err != nil || o.registry == "" {
		return err
	}
	images, err := pushImages(ctx, n, o.registry, "", archives)
	if err != nil {
		return err
	}
	n.say("Install them, which have a tag of their own, with:\nhelm install plumbline charts/plumbline --namespace plumbline-system --create-namespace --wait --set image.registry=%s,image.tag=%s,mesh.proxy.image.repository=%s/envoy,mesh.proxy.image.tag=%s",
		images.registry, images.tag(), images.registry, images.tag())
	return nil
}

func (o options) validate() error {
	switch o.cluster {
	case "local":
		return nil
	case "current":
		if o.registry == "" {
			return errors.New("CLUSTER=current needs REGISTRY, a registry that you can push to and the cluster can pull from, for example: make demo CLUSTER=current REGISTRY=ghcr.io/me (more in " + guide + ")")
		}
		return nil
	default:
		return fmt.Errorf("CLUSTER=%s: want local or current", o.cluster)
	}
}

// tell sets the stage and plays every scene.
func tell(ctx context.Context, n *narrator, admin clusterAccess, images imageSet, o options) error {
	s, done, err := stage(ctx, n, admin, images)
	if err != nil {
		return fmt.Errorf("setting the stage: %w", err)
	}
	defer done()
	for _, scene := range scenes() {
		if err := scene.play(s, ctx); err != nil {
			return fmt.Errorf("scene %q: %w", scene.name, err)
		}
	}
	n.epilogue(admin, o)
	return nil
}
