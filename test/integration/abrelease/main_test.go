// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

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

	"github.com/plumbline-dev/plumbline/internal/controller/elected"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

var (
	admin  client.Client
	config *rest.Config
)

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ABReleases on an API server:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	server, err := apiserver.Start(apiserver.WithKinds)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	config = server.Config
	config.QPS = -1
	types, err := elected.Kinds()
	if err != nil {
		return 1, err
	}
	if admin, err = client.New(config, client.Options{Scheme: types}); err != nil {
		return 1, fmt.Errorf("building a client: %w", err)
	}
	return m.Run(), nil
}
