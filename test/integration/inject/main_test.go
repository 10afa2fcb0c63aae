// SPDX-License-Identifier: Apache-2.0

//go:build integration

package inject

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

// admin asks the API server, which is started once.
var admin client.Client

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(_ *rest.Config, a client.Client) { admin = a }, withAccounts))
}

// withAccounts gives pods an account and its token mounted, as in every cluster.
func withAccounts(s *envtest.Environment) {
	s.ControlPlane.GetAPIServer().Configure().Disable("disable-admission-plugins")
}
