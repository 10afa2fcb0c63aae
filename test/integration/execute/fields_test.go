// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
)

// nextImage is what the pipeline deploys after the repair.
const nextImage = "shop:2.1"

// applier is a way in which a pipeline deploys a Deployment.
type applier struct {
	// manager is the field manager that owns what was applied.
	manager string
	apply   func(w *world, name, image string)
}

// D19 of the review of remediation: after a repair the next deployment failed, with a
// conflict with the executor.
func TestThePipelineDeploysAfterARepairAsBefore(t *testing.T) {
	appliers := map[string]applier{
		"kubectl-apply": {"kubectl", applyByKubectl},
		"helm-upgrade":  {"helm", applyByHelm},
		// Flux and Argo CD force their applies, and expect to own what they applied.
		"flux":   {"kustomize-controller", forceApplyAs("kustomize-controller")},
		"argocd": {"argocd-controller", forceApplyAs("argocd-controller")},
	}
	startAssessor(t)
	w := newWorld(t)
	w.Rollouts()
	w.UnderGuard()
	for i := range 12 { // four that drift are no mass drift beside these
		w.Deploy(ci, fmt.Sprint("other-", i))
	}
	var names []string
	for name, a := range appliers {
		names = append(names, name)
		a.apply(w, name, guarded.Image)
		w.Until(name, "it is in sync", guarded.Reads("InSync"))
		w.SetImage(mallory, name, remediation.EvilImage)
	}
	for _, name := range names {
		w.Until(name, "the drift is told", func(b *v1alpha1.Baseline) error {
			if b.Status.State != v1alpha1.StateDrifted || b.Status.Severity == nil {
				return fmt.Errorf("it is %s", b.Status.State)
			}
			return nil
		})
	}
	asked := w.policyBy(platform, w.Name+"-asked", func(s *v1alpha1.RemediationPolicySpec) {
		s.Mode, s.Exceptions.ActiveWriter = v1alpha1.PolicyModeObserveOnly, v1alpha1.Allowed // the pipeline has deployed a moment ago
	})
	w.plugin().answers(0, []string{"plan", "preview", asked.Name}, "its fields go back to helm (Apply)", "its fields go back to kubectl (Apply)")
	policy, records := w.policy(selectsNothing), newEvidence(t)
	startExecutor(t, records)
	of := make([]any, len(names))
	for i, name := range names {
		of[i] = name
	}
	plan := w.Ended(w.plan(policy, of...))
	if plan.Status.Phase != v1alpha1.PlanSucceeded {
		t.Fatalf("the plan is %s", remediation.Describe(plan))
	}
	w.proven(records, plan)
	for name, a := range appliers {
		t.Run(name, func(t *testing.T) {
			w := w.within(t)
			if got, want := imageOwners(t, w.Live(name)), a.manager+" (Apply)"; got != want {
				t.Errorf("after the repair the image belongs to %s, want %s", got, want)
			}
			a.apply(w, name, nextImage)
			w.Until(name, "the next deployment is authorized", guarded.Reads("InSync"))
			if got := imageOf(w.Live(name)); got != nextImage {
				t.Errorf("it runs %s", got)
			}
		})
	}
}

// imageOwners names the field managers that own the image of the container.
func imageOwners(t *testing.T, o client.Object) string {
	t.Helper()
	var owners []string
	for _, e := range o.GetManagedFields() {
		if strings.Contains(e.FieldsV1.GetRawString(), `"f:image"`) {
			owners = append(owners, fmt.Sprintf("%s (%s)", e.Manager, e.Operation))
		}
	}
	return strings.Join(owners, ", ")
}

func manifest(w *world, name, image string) []byte {
	w.t.Helper()
	d := guarded.Workload(w.Name, name, image, 2)
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	raw, err := json.Marshal(map[string]any{"apiVersion": d.APIVersion, "kind": d.Kind, "metadata": map[string]any{
		"name": name, "namespace": w.Name, "labels": d.Labels,
	}, "spec": map[string]any{
		"replicas": d.Spec.Replicas, "selector": d.Spec.Selector,
		"template": map[string]any{"metadata": map[string]any{"labels": d.Labels}, "spec": map[string]any{
			"containers": []any{map[string]any{"name": "app", "image": image}},
		}},
	}})
	w.Must(err)
	return raw
}

func forceApplyAs(manager string) func(*world, string, string) {
	return func(w *world, name, image string) {
		w.t.Helper()
		patch := client.RawPatch(types.ApplyPatchType, manifest(w, name, image))
		w.Must(w.As(ci).Patch(w.t.Context(), w.Named(name), patch, client.FieldOwner(manager), client.ForceOwnership))
	}
}

// kubeconfigOfCI is how a process deploys as the pipeline.
func kubeconfigOfCI(w *world) string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.Must(apiserver.WriteKubeconfig(path, config, apiserver.Impersonating(config, ci, people, "system:authenticated")))
	return path
}

func applyByKubectl(w *world, name, image string) {
	w.t.Helper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	command := child.Bind(exec.CommandContext(w.t.Context(), kubectl, "--kubeconfig", kubeconfigOfCI(w), "apply", "--server-side", "-f", "-"))
	command.Stdin = bytes.NewReader(manifest(w, name, image))
	if out, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("kubectl apply --server-side: %v\n%s", err, out)
	}
}

func applyByHelm(w *world, name, image string) {
	w.t.Helper()
	chart := w.t.TempDir()
	w.Must(os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), 0o600))
	w.Must(os.Mkdir(filepath.Join(chart, "templates"), 0o700))
	w.Must(os.WriteFile(filepath.Join(chart, "templates", "web.yaml"), manifest(w, name, image), 0o600))
	command := child.Bind(exec.CommandContext(w.t.Context(), os.Getenv("HELM"), "--kubeconfig", kubeconfigOfCI(w), "-n", w.Name, "upgrade", "--install", name, chart))
	command.Env = append(os.Environ(), "HOME="+chart)
	if out, err := command.CombinedOutput(); err != nil {
		w.t.Fatalf("helm upgrade: %v\n%s", err, out)
	}
}
