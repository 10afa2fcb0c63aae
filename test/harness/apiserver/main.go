// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/elected"
)

// Main runs the tests of a package, all on one API server that has nothing but what
// the options put there. It is told to ready before the first test begins, with a client
// of an administrator that knows our kinds. The result is what TestMain exits with.
func Main(m *testing.M, ready func(*rest.Config, client.Client), options ...Option) int {
	code, err := run(m, ready, options)
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests on an API server:", err)
		return 1
	}
	return code
}

func run(m *testing.M, ready func(*rest.Config, client.Client), options []Option) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	server, err := Start(options...)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	server.Config.QPS = -1
	types, err := elected.Kinds()
	if err != nil {
		return 1, err
	}
	admin, err := client.New(server.Config, client.Options{Scheme: types})
	if err != nil {
		return 1, fmt.Errorf("making a client: %w", err)
	}
	ready(server.Config, admin)
	return m.Run(), nil
}
