// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// admin asks the API server, which is started once.
var admin client.Client

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration tests of injected pods:", err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	// As in every cluster: pods have an account, and its token mounted.
	withAccounts := func(s *envtest.Environment) {
		s.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
	}
	server, err := apiserver.Start(withAccounts)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if admin, err = client.New(server.Config, client.Options{}); err != nil {
		return 1, fmt.Errorf("making a client: %w", err)
	}
	return m.Run(), nil
}
