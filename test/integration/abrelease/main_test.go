// SPDX-License-Identifier: Apache-2.0

//go:build integration

package abrelease

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// One API server serves all tests; each has a namespace of its own.
var (
	admin  client.Client
	config *rest.Config
)

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(c *rest.Config, a client.Client) { config, admin = c, a }, apiserver.WithKinds, apiserver.WithBothFamilies))
}
