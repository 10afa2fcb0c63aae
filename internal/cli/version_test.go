// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plumbline-dev/plumbline/internal/cli/clitest"
)

// installed are the Deployments of an installation, as component and version.
func installed(t *testing.T, err error, versions ...[2]string) clitest.Cluster {
	t.Helper()
	return clitest.Cluster{Hooks: interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, object client.ObjectList, _ ...client.ListOption) error {
		list, ok := object.(*metav1.PartialObjectMetadataList)
		if !ok || list.GetObjectKind().GroupVersionKind().Kind != "DeploymentList" {
			t.Errorf("asked for %T", object)
			return nil
		}
		for _, v := range versions {
			list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "plumbline-system", Labels: map[string]string{
				"app.kubernetes.io/name": "plumbline", "app.kubernetes.io/component": v[0], "app.kubernetes.io/version": v[1],
			}}})
		}
		return err
	}}}
}

func TestVersion(t *testing.T) {
	const plugin = "Client Version: v0.0.0-test\n"
	cases := map[string]struct {
		cluster        clitest.Cluster
		args           []string
		code           int
		stdout, stderr string
	}{
		"equal versions": {
			cluster: installed(t, nil, [2]string{"webhook", "v0.0.0-test"}, [2]string{"assessor", "0.0.0-test"}),
			stdout:  plugin + "Server Version: 0.0.0-test (assessor in plumbline-system)\nServer Version: v0.0.0-test (webhook in plumbline-system)\n",
		},
		"a part of another version": {
			cluster: installed(t, nil, [2]string{"webhook", "v0.0.0-test"}, [2]string{"assessor", "v0.2.0"}),
			stdout:  plugin + "Server Version: v0.2.0 (assessor in plumbline-system)\nServer Version: v0.0.0-test (webhook in plumbline-system)\n",
			stderr:  "Warning: this plugin is of version v0.0.0-test, the installation is not (assessor v0.2.0): use the plugin of the installation's version\n",
		},
		"Redis has a version of its own": {
			cluster: installed(t, nil, [2]string{"webhook", "v0.0.0-test"}, [2]string{"redis", "8"}),
			stdout:  plugin + "Server Version: v0.0.0-test (webhook in plumbline-system)\n",
		},
		"as JSON": {
			cluster: installed(t, nil, [2]string{"webhook", "v0.0.0-test"}), args: []string{"-o", "json"},
			stdout: `"component": "webhook"`,
		},
		"no installation": {
			cluster: installed(t, nil), code: 1, stdout: plugin, stderr: "the cluster has no Deployment of Plumbline; --client prints that of the plugin alone",
		},
		"Deployments cannot be listed": {
			cluster: installed(t, errors.New("forbidden")), code: 1, stdout: plugin, stderr: "reading the version of the installation: forbidden; --client",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := tc.cluster.Run(t, verbs, "", append([]string{"version"}, tc.args...)...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.stdout) || !strings.Contains(got.Stderr, tc.stderr) || (tc.stderr == "") != (got.Stderr == "") {
				t.Errorf("gave %d\n%s\n%s", got.Code, got.Stdout, got.Stderr)
			}
		})
	}
}

func TestAPluginOfNoReleaseIsComparedWithNothing(t *testing.T) {
	for _, version := range []string{"", "(devel)", "unknown"} {
		if warning := versionSkew(versionInfo{ClientVersion: version, Server: []serverVersion{{"webhook", "ns", "v0.1.0"}}}); warning != "" {
			t.Errorf("%q: %s", version, warning)
		}
	}
}
