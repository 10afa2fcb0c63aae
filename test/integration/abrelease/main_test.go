// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"fmt"
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/controller/elected"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// One API server serves all tests; each has a namespace of its own.
var (
	admin  client.Client
	config *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config) error {
		types, err := elected.Kinds()
		if err != nil {
			return err
		}
		config = c
		if admin, err = client.New(c, client.Options{Scheme: types}); err != nil {
			return fmt.Errorf("making a client: %w", err)
		}
		return nil
	}, apiserver.WithKinds))
}
