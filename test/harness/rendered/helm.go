// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// Release and Namespace are what every test installs as.
const (
	Release   = "plumbline"
	Namespace = "plumbline-system"
)

// writerPolicyAPI tells `helm template`, which asks no cluster, that the API
// server serves what the writer policy needs.
const writerPolicyAPI = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"

// Client runs one helm binary.
type Client struct {
	binary string
	// Kubeconfig is passed to every call when it is set.
	Kubeconfig string
}

// Find looks for Helm 4: the path in HELM, else helm in PATH. It is an error
// and not a reason to skip that there is none.
func Find(ctx context.Context) (*Client, error) {
	binary := os.Getenv("HELM")
	if binary == "" {
		found, err := exec.LookPath("helm")
		if err != nil {
			return nil, errors.New("no Helm found: `make chart` builds one; or set HELM to the path of a Helm 4, or put it into PATH")
		}
		binary = found
	}
	client := &Client{binary: binary}
	version, err := client.Run(ctx, "version", "--template", "{{.Version}}")
	if err != nil {
		return nil, fmt.Errorf("asking %s for its version: %w", binary, err)
	}
	if !strings.HasPrefix(version, "v4.") {
		return nil, fmt.Errorf("%s is Helm %s; these tests need Helm 4", binary, version)
	}
	return client, nil
}

// Error is a failed call of Helm.
type Error struct {
	Args   []string
	Stderr string
	Err    error
}

func (e *Error) Error() string {
	return fmt.Sprintf("running helm %s: %v\n%s", strings.Join(e.Args, " "), e.Err, strings.TrimSpace(e.Stderr))
}

func (e *Error) Unwrap() error { return e.Err }

// Run runs Helm and returns its standard output; the error is an *Error.
func (c *Client) Run(ctx context.Context, args ...string) (string, error) {
	if err := touchChart(); err != nil {
		return "", err
	}
	cmd := child.Bind(exec.CommandContext(ctx, c.binary, args...))
	cmd.Env = append(os.Environ(), "HELM_NAMESPACE="+Namespace)
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), &Error{Args: args, Stderr: stderr.String(), Err: err}
	}
	return stdout.String(), nil
}

// touchChart opens every file of the chart. Helm reads them in a process of its
// own, where `go test` does not see it: without this a changed template would
// find the cached result of the one before.
func touchChart() error {
	err := filepath.WalkDir(ChartDir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	return nil
}

// Template renders the chart as a cluster with MutatingAdmissionPolicy would
// get it; args are further arguments of `helm template`.
func (c *Client) Template(ctx context.Context, args ...string) (string, error) {
	return c.Run(ctx, append([]string{"template", Release, ChartDir(), "--api-versions", writerPolicyAPI}, args...)...)
}

// TemplateWithoutWriterPolicy renders the chart for a cluster that does not
// serve MutatingAdmissionPolicy.
func (c *Client) TemplateWithoutWriterPolicy(ctx context.Context, args ...string) (string, error) {
	return c.Run(ctx, append([]string{"template", Release, ChartDir()}, args...)...)
}

// ChartDir is the directory of the chart.
func ChartDir() string { return filepath.Join(RepositoryDir(), "charts", "plumbline") }

// RepositoryDir is the root of the repository: the nearest directory above the
// working directory, which for a test is its package, that holds a go.mod.
func RepositoryDir() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "."
}
