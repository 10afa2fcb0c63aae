// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/waits"
)

// Cluster is a cluster one talks to through kubectl and helm.
type Cluster struct {
	// Kubeconfig is the path used for every call; empty for the current one.
	Kubeconfig string
	// Path is searched for kubectl, helm and kubectl plugins before PATH.
	Path string

	connecting sync.Mutex
	connected  *reader
}

// Result is what a command printed.
type Result struct {
	Command string
	Stdout  string
	Stderr  string
}

// Output joins both streams, as a terminal shows them.
func (r Result) Output() string { return r.Stderr + r.Stdout }

// CommandError says which command failed, and what it printed.
type CommandError struct {
	Result
	Err error
}

func (e *CommandError) Error() string {
	return fmt.Sprintf("running %q: %v\n%s", e.Command, e.Err, strings.TrimRight(e.Output(), "\n"))
}

func (e *CommandError) Unwrap() error { return e.Err }

// Option changes one call.
type Option func(*exec.Cmd)

// WithStdin feeds the command.
func WithStdin(s string) Option {
	return func(c *exec.Cmd) { c.Stdin = strings.NewReader(s) }
}

// WithEnv adds an environment variable, KEY=value.
func WithEnv(kv string) Option {
	return func(c *exec.Cmd) { c.Env = append(c.Env, kv) }
}

// WithStdout copies what the command prints on standard output as it runs.
func WithStdout(w io.Writer) Option {
	return func(c *exec.Cmd) { c.Stdout = io.MultiWriter(c.Stdout, w) }
}

// Run runs a program against the cluster; kubectl and helm find it by KUBECONFIG.
func (c *Cluster) Run(ctx context.Context, args []string, options ...Option) (Result, error) {
	program := args[0]
	if c.Path != "" {
		if candidate := filepath.Join(c.Path, program); isExecutable(candidate) {
			program = candidate
		}
	}
	cmd := child.Bind(exec.CommandContext(ctx, program, args[1:]...))
	cmd.Env = os.Environ()
	if c.Kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+c.Kubeconfig)
	}
	if c.Path != "" {
		cmd.Env = append(cmd.Env, "PATH="+c.Path+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	for _, o := range options {
		o(cmd)
	}
	err := cmd.Run()
	result := Result{Command: strings.Join(args, " "), Stdout: stdout.String(), Stderr: stderr.String()}
	if err != nil {
		return result, &CommandError{Result: result, Err: err}
	}
	return result, nil
}

// Kubectl runs kubectl and returns what it printed on standard output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	result, err := c.Run(ctx, append([]string{"kubectl"}, args...))
	return result.Stdout, err
}

// Apply applies a manifest.
func (c *Cluster) Apply(ctx context.Context, manifest string, args ...string) error {
	_, err := c.Run(ctx, append([]string{"kubectl", "apply", "-f", "-"}, args...), WithStdin(manifest))
	return err
}

// As is the cluster seen by a service account with a token of its own.
func (c *Cluster) As(ctx context.Context, namespace, serviceAccount, dir string) (*Cluster, error) {
	token, err := c.Kubectl(ctx, "create", "token", serviceAccount, "-n", namespace, "--duration=2h")
	if err != nil {
		return nil, err
	}
	view, err := c.Kubectl(ctx, "config", "view", "--raw", "--minify", "--flatten", "-o", "json")
	if err != nil {
		return nil, err
	}
	kubeconfig, err := withToken([]byte(view), strings.TrimSpace(token))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, namespace+"-"+serviceAccount+".kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("writing kubeconfig: %w", err)
	}
	return &Cluster{Kubeconfig: path, Path: c.Path}, nil
}

// withToken replaces the only user of a minified kubeconfig by a bearer token.
func withToken(view []byte, token string) ([]byte, error) {
	var config map[string]any
	if err := json.Unmarshal(view, &config); err != nil {
		return nil, fmt.Errorf("decoding kubeconfig: %w", err)
	}
	users, _ := config["users"].([]any)
	if len(users) != 1 {
		return nil, fmt.Errorf("decoding kubeconfig: want one user, have %d", len(users))
	}
	user, _ := users[0].(map[string]any)
	user["user"] = map[string]any{"token": token}
	return json.Marshal(config)
}

// Eventually polls until check holds; check returns what it saw, for the error.
func Eventually(ctx context.Context, what string, limit time.Duration, check func(context.Context) (ok bool, saw string)) error {
	return waits.Until(ctx, limit, what, func(ctx context.Context) error {
		if ok, saw := check(ctx); !ok {
			return errors.New(saw)
		}
		return nil
	})
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}
