// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	systemNamespace = "plumbline-system"
	clusterTool     = "bin/cluster"
)

// clusterAccess is an admin's way into the cluster.
type clusterAccess = *harness.Cluster

// prepare builds what is missing and gets a cluster that has the images.
func prepare(ctx context.Context, n *narrator, o options) (clusterAccess, imageSet, error) {
	if o.cluster == "current" {
		return prepareCurrent(ctx, n, o)
	}
	archives, err := buildImages(ctx, n)
	if err != nil {
		return nil, imageSet{}, err
	}
	admin, err := bringUp(ctx, n, o, archives)
	return admin, loaded, err
}

// prepareCurrent takes somebody's cluster as it is, after a look at what could go
// wrong there.
func prepareCurrent(ctx context.Context, n *narrator, o options) (clusterAccess, imageSet, error) {
	if err := preflight(ctx, n, o); err != nil {
		return nil, imageSet{}, err
	}
	archives, err := buildImages(ctx, n)
	if err != nil {
		return nil, imageSet{}, err
	}
	suffix, err := contentSuffix(archives)
	if err != nil {
		return nil, imageSet{}, err
	}
	images, err := pushImages(ctx, n, o.registry, suffix, archives)
	if err != nil {
		return nil, imageSet{}, err
	}
	path, err := toolPath(ctx, n, o)
	if err != nil {
		return nil, imageSet{}, err
	}
	admin := &harness.Cluster{Path: path}
	return admin, images, tryPull(ctx, n, admin, images)
}

// bringUp brings the local cluster up and loads the images.
func bringUp(ctx context.Context, n *narrator, o options, archives []string) (clusterAccess, error) {
	path, err := toolPath(ctx, n, o)
	if err != nil {
		return nil, err
	}
	n.progress("bringing up the cluster %q", o.name)
	if err := call(ctx, n, clusterTool, "up", "--name", o.name, "--audit-policy", "hack/demo/audit-policy.yaml"); err != nil {
		return nil, err
	}
	if err := call(ctx, n, clusterTool, append([]string{"load", "--name", o.name}, archives...)...); err != nil {
		return nil, err
	}
	kubeconfig, err := capture(ctx, clusterTool, "kubeconfig", "--name", o.name)
	if err != nil {
		return nil, err
	}
	return &harness.Cluster{Kubeconfig: kubeconfig, Path: path}, nil
}

// install installs or upgrades the chart and waits until it is ready.
func install(ctx context.Context, n *narrator, admin clusterAccess, images imageSet) error {
	// The namespace enforces what the chart promises about its pods.
	if err := admin.Apply(ctx, systemNamespaceManifest); err != nil {
		return err
	}
	n.progress("installing the chart with Helm")
	args := []string{
		"helm", "upgrade", "--install", "plumbline", "charts/plumbline",
		"--namespace", systemNamespace, "--wait", "--timeout", "3m",
		"--set", "image.registry=" + images.registry, "--set", "image.tag=" + images.tag(),
		"--set", "mesh.enabled=true", "--set", "gateway.enabled=true", "--set", "delivery.enabled=true",
		"--set", "mesh.proxy.image.repository=" + images.registry + "/envoy", "--set", "mesh.proxy.image.tag=" + images.tag(),
		"--set-json", `guard.resources=["Workloads",{"group":"","version":"v1","resource":"pods"}]`,
		// Of the demo nothing need remain, and there may be no volumes; it reads its
		// records through the executor.
		"--set", "executor.enabled=true", "--set-json", `executor.evidence={"serve":true,"volume":{"mayBeLost":true,"source":{"emptyDir":{}}}}`,
		"--set", "assessor.effectiveness.enabled=true",
		// A small node has to have place for all pods.
		"--set", "webhook.resources.requests.cpu=50m", "--set", "assessor.resources.requests.cpu=50m",
		"--set", "xds.resources.requests.cpu=50m", "--set", "gateway.resources.requests.cpu=50m",
		"--set", "commonLabels." + strings.ReplaceAll(demoLabel, ".", `\.`) + "=release",
	}
	return n.runAs(ctx, admin, "helm upgrade --install plumbline charts/plumbline -n "+systemNamespace+" --wait", args)
}

// stage resets the demo's namespaces and gives every player a way in.
func stage(ctx context.Context, n *narrator, admin clusterAccess, images imageSet) (*story, func(), error) {
	n.progress("resetting the demo's namespaces")
	if _, err := admin.Kubectl(ctx, "delete", "remediationpolicy", mainPolicy, fightPolicy, "--ignore-not-found", "--wait=true"); err != nil {
		return nil, nil, err
	}
	if _, err := admin.Kubectl(ctx, "delete", "namespace", shopNamespace, ciNamespace, splitNamespace, "--ignore-not-found", "--wait=true"); err != nil {
		return nil, nil, err
	}
	if err := admin.Apply(ctx, named(accessManifest)); err != nil {
		return nil, nil, err
	}
	if err := admin.Apply(ctx, named(guardManifest)); err != nil {
		return nil, nil, err
	}
	if _, err := admin.Kubectl(ctx, "wait", "--for=condition=Ready", "specguard/shop", "-n", shopNamespace, "--timeout=60s"); err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "plumbline-demo-")
	if err != nil {
		return nil, nil, fmt.Errorf("creating a folder for the CI's kubeconfig: %w", err)
	}
	ci, err := admin.As(ctx, ciNamespace, ciAccount, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	bot, err := admin.As(ctx, ciNamespace, botAccount, dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, nil, err
	}
	s := &story{narrator: n, admin: admin, ci: ci, bot: bot, image: images.shop(), otherImage: images.shopHotfix()}
	return s, func() { os.RemoveAll(dir) }, nil
}

// call runs one of our own tools and passes its output on.
func call(ctx context.Context, n *narrator, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = n.out, n.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s %s: %w", program, strings.Join(args, " "), err)
	}
	return nil
}

// capture runs one of our own tools and returns its standard output.
func capture(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running %s %s: %w", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
