// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// oldestVariable names the environment variable with the path of the kube-apiserver of
// the oldest Kubernetes that Plumbline supports.
const oldestVariable = "KUBE_APISERVER_OLDEST"

// HasOldest tells whether the environment names that program.
func HasOldest() bool { return os.Getenv(oldestVariable) != "" }

// Oldest returns the path of that program.
func Oldest() (string, error) {
	program := os.Getenv(oldestVariable)
	if program == "" {
		return "", errors.New(oldestVariable + " is not set; it names a kube-apiserver (make upgrade-long sets it)")
	}
	return program, nil
}

// Program returns the option that starts another kube-apiserver than that of [Assets].
func Program(program string) (Option, error) {
	script, err := wrap(program)
	if err != nil {
		return nil, err
	}
	return func(server *envtest.Environment) { server.ControlPlane.GetAPIServer().Path = script }, nil
}

// Upgrade stops an API server in good order, changes its options, and starts it again
// at the same address, over the same etcd. The API server keeps its certificates if it
// was started with [CertificatesIn].
func Upgrade(server *envtest.Environment, options ...Option) error {
	if err := server.ControlPlane.GetAPIServer().Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	for _, option := range options {
		option(server)
	}
	return Revive(server)
}
