// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
	"github.com/plumbline-dev/plumbline/test/harness/rendered"
)

// startTime is how long each part of the control plane may take to start, and to
// stop.
const startTime = 90 * time.Second

const loopback = "127.0.0.1"

// Assets is the directory of the binaries, from KUBEBUILDER_ASSETS.
func Assets() (string, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return "", errors.New("KUBEBUILDER_ASSETS is not set; it names the directory of etcd, kube-apiserver and kubectl (make test-integration sets it)")
	}
	return assets, nil
}

// Option changes an API server before it starts.
type Option func(*envtest.Environment)

// WithKinds installs Plumbline's kinds, and nothing else of the chart.
func WithKinds(server *envtest.Environment) {
	server.CRDDirectoryPaths = []string{filepath.Join(rendered.ChartDir(), "files", "crds")}
	server.ErrorIfCRDPathMissing = true
}

// WithBothFamilies has the API server give addresses of IPv6 to Services that ask for them.
func WithBothFamilies(server *envtest.Environment) {
	server.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/24,fd00::/112")
}

// CertificatesIn has the API server keep its certificates in a directory, so that
// it has the same ones after a restart ([Restart], [Kill], [Revive]).
func CertificatesIn(directory string) Option {
	return func(server *envtest.Environment) { server.ControlPlane.GetAPIServer().CertDir = directory }
}

// Start starts an API server of its own; the caller stops it.
func Start(options ...Option) (*envtest.Environment, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	// On a busy machine the default of 20 seconds is not enough.
	server := &envtest.Environment{BinaryAssetsDirectory: assets, ControlPlaneStartTimeout: startTime, ControlPlaneStopTimeout: startTime}
	if err := claimPorts(server); err != nil {
		return nil, err
	}
	if err := bind(server, assets); err != nil {
		return nil, err
	}
	for _, option := range options {
		option(server)
	}
	if _, err := server.Start(); err != nil {
		// A kind that is refused leaves etcd and the API server running.
		return nil, errors.Join(fmt.Errorf("starting the API server: %w", err), server.Stop())
	}
	// The client's own limit would only slow the tests.
	server.Config.QPS, server.Config.Burst = 1000, 1000
	return server, nil
}

// claimPorts takes ports that no outgoing connection can have, neither before the
// server listens nor while it is away ([Kill]); those of envtest are such.
func claimPorts(server *envtest.Environment) error {
	var ports [3]string
	for i := range ports {
		port, err := freeport.Claim()
		if err != nil {
			return err
		}
		ports[i] = strconv.Itoa(port)
	}
	api := &envtest.APIServer{}
	api.Address, api.Port = loopback, ports[0]
	etcd := &envtest.Etcd{URL: &url.URL{Scheme: "http", Host: net.JoinHostPort(loopback, ports[1])}}
	etcd.Configure().Set("listen-peer-urls", "http://"+net.JoinHostPort(loopback, ports[2]))
	server.ControlPlane.APIServer, server.ControlPlane.Etcd = api, etcd
	return nil
}

// bind has etcd and the API server end with this process, which may be killed. The
// scripts stay in bin/test: a server that starts again needs them, and all tests can
// share them.
func bind(server *envtest.Environment, assets string) (err error) {
	if server.ControlPlane.APIServer.Path, err = wrap(filepath.Join(assets, "kube-apiserver")); err != nil {
		return err
	}
	server.ControlPlane.Etcd.Path, err = wrap(filepath.Join(assets, "etcd"))
	return err
}

// wrap writes the script of a program.
func wrap(program string) (script string, err error) {
	folder := fmt.Sprintf("assets-%.6x", sha256.Sum256([]byte(filepath.Dir(program))))
	return child.Wrap(filepath.Join(rendered.RepositoryDir(), "bin", "test", folder), program)
}

// Controllers is a running kube-controller-manager.
type Controllers struct {
	cmd  *exec.Cmd
	done chan error
	log  string // a file
}

// StartControllers runs some controllers of kube-controller-manager, each under
// its own service account as in a real cluster. What it logs goes to a file in
// directory. The caller stops it.
func StartControllers(directory, kubeconfig string, controllers ...string) (*Controllers, error) {
	return StartControllersWith(nil, directory, kubeconfig, controllers...)
}

// StartControllersWith is StartControllers with more flags, which hold over those
// of StartControllers.
func StartControllersWith(flags []string, directory, kubeconfig string, controllers ...string) (*Controllers, error) {
	assets, err := Assets()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(directory, "kube-controller-manager.log"))
	if err != nil {
		return nil, fmt.Errorf("making the log of kube-controller-manager: %w", err)
	}
	flags = append([]string{
		"--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--use-service-account-credentials", "--leader-elect=false", "--secure-port=0",
		"--controllers", strings.Join(controllers, ","),
	}, flags...)
	cmd := child.Bind(exec.Command(filepath.Join(assets, "kube-controller-manager"), flags...)) //nolint:gosec,noctx // a test's own binary; Stop ends it, not a context
	cmd.Stdout, cmd.Stderr = log, log
	// The child has a handle of its own.
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return nil, fmt.Errorf("starting kube-controller-manager: %w", err)
	}
	c := &Controllers{cmd: cmd, done: make(chan error, 1), log: log.Name()}
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
	case <-time.After(startTime):
	}
	return errors.Join(fmt.Errorf("waited %s until kube-controller-manager ends; last seen: it runs, and said\n%s", startTime, c.Said()), c.cmd.Process.Kill())
}

// Said is what the controllers have logged so far, or why that cannot be read.
func (c *Controllers) Said() string {
	said, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(said)
}
