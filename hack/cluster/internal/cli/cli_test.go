// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaultCache(t *testing.T) {
	home := func() (string, error) { return "/home/me", nil }
	cases := map[string]struct {
		env  map[string]string
		want string
	}{
		"a plain user's cache is in the home folder": {nil, "/home/me/.cache/plumbline"},
		"XDG_CACHE_HOME moves it":                    {map[string]string{"XDG_CACHE_HOME": "/x"}, "/x/plumbline"},
		"PLUMBLINE_CACHE wins":                       {map[string]string{"XDG_CACHE_HOME": "/x", "PLUMBLINE_CACHE": "/scratch/p"}, "/scratch/p"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := defaultCache(func(key string) string { return tc.env[key] }, home)
			if err != nil || got != tc.want {
				t.Errorf("defaultCache = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
	_, err := defaultCache(func(string) string { return "" }, func() (string, error) { return "", errors.New("no home") })
	if err == nil || !strings.Contains(err.Error(), "PLUMBLINE_CACHE") {
		t.Errorf("without a home: %v, want a hint at PLUMBLINE_CACHE", err)
	}
}

func TestSearchUpwards(t *testing.T) {
	root := t.TempDir()
	module := filepath.Join(root, "repo", "hack", "cluster", "components", "kubernetes")
	deep := filepath.Join(root, "repo", "pkg", "deep")
	for _, folder := range []string{module, deep} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want := filepath.Dir(module)
	for _, start := range []string{deep, filepath.Join(root, "repo"), filepath.Join(root, "repo", "hack", "cluster"), want} {
		if got, found := searchUpwards(start); !found || got != want {
			t.Errorf("from %s: %q, %v; want %q", start, got, found, want)
		}
	}
	if got, found := searchUpwards(root); found {
		t.Errorf("above the repository: %q", got)
	}
}

// run executes a command line on empty folders.
func run(t *testing.T, arguments ...string) (status int, out, errOut string) {
	t.Helper()
	folder := t.TempDir()
	var stdout, stderr bytes.Buffer
	arguments = append([]string{"--cache", filepath.Join(folder, "cache"), "--state", filepath.Join(folder, "state")}, arguments...)
	status = Run(t.Context(), arguments, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

func TestRunReportsErrorsOnce(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an unknown command":                    {[]string{"fly"}, `unknown command "fly"`},
		"an unknown flag":                       {[]string{"up", "--fly"}, "unknown flag: --fly"},
		"an argument too many":                  {[]string{"up", "demo"}, "unknown command"},
		"an unknown set":                        {[]string{"build", "--only", "half"}, "control-plane"},
		"an unknown program":                    {[]string{"which", "docker"}, `"docker"`},
		"a bad name":                            {[]string{"down", "--name", "A B"}, "cluster name"},
		"no such cluster":                       {[]string{"kubeconfig", "--name", "x"}, "no such cluster: x"},
		"an audit policy that does not exist":   {[]string{"up", "--audit-policy", "/nonexistent"}, "audit policy"},
		"an image without a source":             {[]string{"image", "build", "--name", "x", "--tag", "t", "--out", "o"}, "[binary package]"},
		"an image with two sources":             {[]string{"image", "build", "--name", "x", "--tag", "t", "--out", "o", "--binary", "b", "--package", "p"}, "were all set"},
		"an image of Envoy without a tag":       {[]string{"image", "envoy", "--out", "o"}, `"tag"`},
		"an image without a tag":                {[]string{"image", "redis", "--out", "o"}, `"tag"`},
		"a push without a registry":             {[]string{"image", "push", "x.tar"}, `"registry"`},
		"a check of a push without a registry":  {[]string{"image", "check-push", "x"}, `"registry"`},
		"a check of a push to no registry":      {[]string{"image", "check-push", "--registry", "no registry", "docker.io/plumbline/x:dev"}, "naming docker.io/plumbline/x:dev"},
		"a registry for no cluster":             {[]string{"registry", "--name", "x"}, "no such cluster: x"},
		"a registry without a node to pull":     {[]string{"up", "--nodes", "0", "--host-registry", "5001"}, "nothing would pull"},
		"a port that is none":                   {[]string{"up", "--host-registry", "70000"}, "value out of range"},
		"an extra file that is none":            {[]string{"image", "build", "--name", "x", "--binary", "b", "--tag", "t", "--out", "o", "--file", "nonsense"}, "SOURCE:PATH"},
		"components where there are none":       {[]string{"--components", "/nonexistent", "assets"}, "reading the module of component kubernetes"},
		"a command to run inside no cluster":    {[]string{"exec", "--name", "x", "--", "ls"}, "no such cluster: x"},
		"an archive that is to go nowhere else": {[]string{"load", "--name", "x", "a.tar"}, "no such cluster: x"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status, out, errOut := run(t, tc.arguments...)
			if status != 1 || out != "" || !strings.HasPrefix(errOut, "cluster: ") || strings.Count(errOut, tc.want) != 1 {
				t.Errorf("status %d, out %q, err %q; want status 1 and %q", status, out, errOut, tc.want)
			}
		})
	}
}

func TestInterruptedCommandHasTheShellsStatus(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut bytes.Buffer
	folder := t.TempDir()
	status := Run(ctx, []string{"--cache", folder, "assets"}, &out, &errOut)
	if status != 130 || !strings.Contains(errOut.String(), "interrupted") {
		t.Errorf("status %d, %q", status, errOut.String())
	}
}

func TestListOfNothingHasAHeader(t *testing.T) {
	status, out, errOut := run(t, "list")
	if status != 0 || strings.Join(strings.Fields(out), " ") != "NAME AGE SERVER STATE" || errOut != "" {
		t.Errorf("status %d, %q, %q", status, out, errOut)
	}
}

func TestImageBuildFromABinaryAndFromAPackageAgree(t *testing.T) {
	folder := t.TempDir()
	module := filepath.Join(folder, "src")
	if err := errors.Join(
		os.Mkdir(module, 0o755),
		os.WriteFile(filepath.Join(module, "main.go"), []byte("package main\n\nfunc main() {}\n"), 0o644),
	); err != nil {
		t.Fatal(err)
	}
	build := func(out string) string {
		t.Helper()
		status, text, errOut := run(t, "image", "build", "--name", "x", "--package", filepath.Join(module, "main.go"), "--tag", "docker.io/plumbline/x:v1", "--out", filepath.Join(folder, out))
		if status != 0 {
			t.Fatalf("status %d: %s", status, errOut)
		}
		return text
	}
	first, second := build("a.tar"), build("b.tar")
	if first != second || !strings.HasPrefix(first, "docker.io/plumbline/x:v1 sha256:") {
		t.Errorf("two builds of one source give %q and %q", first, second)
	}
}

func TestState(t *testing.T) {
	for problem, want := range map[string]string{"": "healthy", "etcd died": "broken: etcd died", "etcd died\nlast lines": "broken: etcd died"} {
		if got := state(problem); got != want {
			t.Errorf("state(%q) = %q, want %q", problem, got, want)
		}
	}
	if got := age(time.Time{}); got != "-" {
		t.Errorf("age of the unknown is %q", got)
	}
}
