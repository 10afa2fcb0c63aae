// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"context"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const (
	// assessorUser is the chart's service account of the assessor.
	assessorUser = "system:serviceaccount:plumbline-system:plumbline-assessor"
	// patience bounds every wait.
	patience = 20 * time.Second
)

// One API server serves all tests; each has a namespace of its own.
var (
	config *rest.Config
	admin  client.Client
	// cluster is where the worlds are.
	cluster *guarded.Cluster
	// kubeconfig is that of config, as a file's content.
	kubeconfig []byte
)

func TestMain(m *testing.M) {
	os.Exit(guarded.Main(m, patience, func(c *guarded.Cluster, server *envtest.Environment) {
		cluster, config, admin, kubeconfig = c, c.Config, c.Admin, server.KubeConfig
	}, withRoomInEtcd))
}

// withRoomInEtcd has etcd take more than the default of 2 GiB: long benchmarks store as
// much.
func withRoomInEtcd(server *envtest.Environment) {
	server.ControlPlane.Etcd.Configure().Append("quota-backend-bytes", "8589934592")
}

func awaitStamp(ctx context.Context) error { return apiserver.AwaitStamp(ctx, admin, patience) }
