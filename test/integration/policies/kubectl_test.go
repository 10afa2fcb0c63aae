// SPDX-License-Identifier: Apache-2.0

//go:build integration

package policies

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness/child"
)

// A stamp must not make every GitOps tool see a difference: a dry run of what is
// already there, by somebody else, has to come back as it is stored.
func TestDiffOfTheLiveObjectByAnotherUserShowsNothing(t *testing.T) {
	needsStampingPolicy(t)
	d := deployment("diffed")
	if err := mustBe(t, "alice", "tenants").Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	apply(t, d, strategic("bob", setImage))
	live := deployment("diffed")
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		t.Fatal(err)
	}
	forged := live.DeepCopy()
	forged.Annotations["plumbline.dev/writer"] = "carol"
	unstamped := live.DeepCopy()
	unstamped.Annotations = nil
	tests := map[string]client.Object{"as it is stored": live, "with a forged stamp": forged, "without a stamp": unstamped}
	for name, manifest := range tests {
		for _, flag := range []string{"--server-side=false", "--server-side=true"} {
			t.Run(name+" "+flag, func(t *testing.T) {
				if out, err := kubectl(t, manifest, "diff", flag, "-f", "-", "--as", "carol", "--as-group", "tenants"); err != nil {
					t.Errorf("kubectl diff: %v\n%s", err, out)
				}
			})
		}
	}
}

// kubectl runs the kubectl beside the API server with a manifest on standard input.
func kubectl(t *testing.T, manifest client.Object, args ...string) (string, error) {
	t.Helper()
	manifest = manifest.DeepCopyObject().(client.Object)
	manifest.GetObjectKind().SetGroupVersionKind(deploymentKind)
	manifest.SetManagedFields(nil)
	manifest.SetResourceVersion("")
	manifest.SetUID("")
	body, err := yaml.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	cmd := child.Bind(exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...))
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	cmd.Stdin = bytes.NewReader(body)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
