// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plumbline-dev/plumbline/test/harness"
)

const (
	systemNamespace = "plumbline-system"
	clusterTool     = "bin/cluster"
	imageDir        = "bin/images"
	localRegistry   = "docker.io/plumbline"
	imageTag        = "dev"
)

// clusterAccess is an admin's way into the cluster.
type clusterAccess = *harness.Cluster

// prepare builds what is missing, brings the cluster up and installs Plumbline.
func prepare(ctx context.Context, n *narrator, o options) (clusterAccess, error) {
	if err := buildImages(ctx, n, o); err != nil {
		return nil, err
	}
	admin, err := reach(ctx, n, o)
	if err != nil {
		return nil, err
	}
	return admin, install(ctx, n, admin, o)
}

// reach brings the local cluster up, or takes the current one as it is.
func reach(ctx context.Context, n *narrator, o options) (clusterAccess, error) {
	path, err := toolPath(ctx, n, o)
	if err != nil {
		return nil, err
	}
	if o.cluster == "current" {
		return &harness.Cluster{Path: path}, nil
	}
	n.progress("bringing up the cluster %q", o.name)
	if err := call(ctx, n, clusterTool, "up", "--name", o.name); err != nil {
		return nil, err
	}
	archives, err := filepath.Glob(filepath.Join(imageDir, "*.tar"))
	if err != nil {
		return nil, fmt.Errorf("listing images: %w", err)
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

// toolPath returns a folder with kubectl, helm and the plugin.
func toolPath(ctx context.Context, n *narrator, o options) (string, error) {
	dir, err := filepath.Abs("bin/path")
	if err != nil {
		return "", fmt.Errorf("finding bin/path: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("creating %s: %w", dir, err)
	}
	plugin, err := filepath.Abs("bin/kubectl-plumbline")
	if err != nil {
		return "", fmt.Errorf("finding the plugin: %w", err)
	}
	tools := map[string]string{"kubectl-plumbline": plugin, "kubectl_complete-plumbline": plugin}
	if o.cluster == "local" {
		n.progress("building Kubernetes and its tools where they are not in the cache yet (about 10 minutes on 2 cores, once)")
		if err := call(ctx, n, clusterTool, "build"); err != nil {
			return "", err
		}
	}
	for _, tool := range []string{"helm", "kubectl"} {
		if tools[tool], err = exec.LookPath(tool); err == nil && o.cluster == "current" {
			continue
		}
		if tools[tool], err = capture(ctx, clusterTool, "which", tool); err != nil {
			return "", err
		}
	}
	for name, target := range tools {
		link := filepath.Join(dir, name)
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			return "", fmt.Errorf("replacing %s: %w", link, err)
		}
		if err := os.Symlink(target, link); err != nil {
			return "", fmt.Errorf("linking %s: %w", name, err)
		}
	}
	return dir, nil
}

// install installs or upgrades the chart and waits until it is ready.
func install(ctx context.Context, n *narrator, admin clusterAccess, o options) error {
	// The namespace enforces what the chart promises about its pods.
	if err := admin.Apply(ctx, systemNamespaceManifest); err != nil {
		return err
	}
	n.progress("installing the chart with Helm")
	args := []string{
		"helm", "upgrade", "--install", "plumbline", "charts/plumbline",
		"--namespace", systemNamespace, "--wait", "--timeout", "3m",
		"--set", "image.registry=" + registryOf(o), "--set", "image.tag=" + imageTag,
	}
	return n.runAs(ctx, admin, "helm upgrade --install plumbline charts/plumbline -n "+systemNamespace+" --wait", args)
}

// stage resets the demo's namespaces and gives every player a way in.
func stage(ctx context.Context, n *narrator, admin clusterAccess, o options) (*story, func(), error) {
	n.progress("resetting the demo's namespaces")
	if _, err := admin.Kubectl(ctx, "delete", "namespace", shopNamespace, ciNamespace, "--ignore-not-found", "--wait=true"); err != nil {
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
	image := registryOf(o) + "/shop:" + imageTag
	s := &story{narrator: n, admin: admin, ci: ci, image: image, otherImage: registryOf(o) + "/shop:hotfix"}
	return s, func() { os.RemoveAll(dir) }, nil
}

// registryOf is where the images are: a push keeps their path below the registry.
func registryOf(o options) string {
	if o.registry == "" {
		return localRegistry
	}
	return strings.TrimSuffix(o.registry, "/") + "/plumbline"
}

// epilogue says what to try next.
func (n *narrator) epilogue(admin clusterAccess) {
	n.heading("What to try next")
	if admin.Kubeconfig != "" {
		n.say("  export KUBECONFIG=%s PATH=%s:$PATH", admin.Kubeconfig, admin.Path)
	}
	n.say("  kubectl get baselines -A")
	n.say("  kubectl plumbline accept deployment/cart -n %s --reason 'sale until Sunday'", shopNamespace)
	n.say("  kubectl plumbline history deployment/web -n %s", shopNamespace)
	n.say("  kubectl plumbline hash -f manifest.yaml")
	n.say("  kubectl set image deployment/web app=nginx -n %s --as %s", shopNamespace, human)
	n.say("\nThe cluster keeps running; `make demo` again takes seconds, `make cluster-down`\nremoves it. This run took %.0f s.", secondsSince(n))
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
