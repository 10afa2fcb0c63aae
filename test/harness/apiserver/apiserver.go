// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real etcd and kube-apiserver for tests, with the
// built-in controllers beside them where a test needs what they do.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startTime is how long each part of the control plane may take to start, and to
// stop.
const startTime = 90 * time.Second

// Assets is the directory of the binaries, from KUBEBUILDER_ASSETS.
func Assets() (string, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return "", errors.New("KUBEBUILDER_ASSETS is not set; it names the directory of etcd, kube-apiserver and kubectl (make test-integration sets it)")
	}
	return assets, nil
}

// Start starts an API server of its own; the caller stops it.
func Start() (*envtest.Environment, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	// On a busy machine the default of 20 seconds is not enough.
	server := &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: startTime, ControlPlaneStopTimeout: startTime}
	if _, err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting the API server: %w", err)
	}
	// The client's own limit would only slow the tests.
	server.Config.QPS, server.Config.Burst = 1000, 1000
	return server, nil
}

// As is a client that acts as a user; policies see that user and no other.
// Service accounts get their groups by themselves.
func As(config *rest.Config, user string, groups ...string) (client.Client, error) {
	return client.New(Impersonate(config, user, groups...), client.Options{Scheme: scheme.Scheme})
}

// Impersonate is a configuration that acts as a user.
func Impersonate(config *rest.Config, user string, groups ...string) *rest.Config {
	impersonated := rest.CopyConfig(config)
	groups = append([]string{"system:authenticated"}, groups...)
	if rest, ok := strings.CutPrefix(user, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	impersonated.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return impersonated
}

// Controllers is a running kube-controller-manager.
type Controllers struct {
	cmd  *exec.Cmd
	done chan error
}

// StartControllers runs some controllers of kube-controller-manager, each under
// its own service account as in a real cluster. What it logs goes to a file in
// directory. The caller stops it.
func StartControllers(directory, kubeconfig string, controllers ...string) (*Controllers, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(directory, "kube-controller-manager.log"))
	if err != nil {
		return nil, fmt.Errorf("making the log of kube-controller-manager: %w", err)
	}
	cmd := exec.Command(filepath.Join(assets, "kube-controller-manager"), //nolint:gosec,noctx // a test's own binary; Stop ends it, not a context
		"--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
		"--controllers", strings.Join(controllers, ","))
	cmd.Stdout, cmd.Stderr = log, log
	// It must not outlive a test that is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The child has a handle of its own.
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("starting kube-controller-manager: %w", err)
	}
	c := &Controllers{cmd: cmd, done: make(chan error, 1)}
	go func() { c.done <- cmd.Wait() }()
	return c, nil
}

// Stop ends the controllers and waits for their end.
func (c *Controllers) Stop(ctx context.Context) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping kube-controller-manager: %w", err)
	}
	select {
	case err := <-c.done:
		// To end by the signal it was sent is no failure.
		if exit := (*exec.ExitError)(nil); err == nil || errors.As(err, &exit) {
			return nil
		}
		return fmt.Errorf("waiting for kube-controller-manager: %w", err)
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
	}
	return errors.Join(errors.New("kube-controller-manager did not stop by itself"), c.cmd.Process.Kill())
}
