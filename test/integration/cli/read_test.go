// SPDX-License-Identifier: Apache-2.0

//go:build integration

package cli

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness/child"
)

func TestStatus_ShowsBaselinesWorstFirst(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.deployment("aa", "nginx:1.27")
	f.authorize("aa", "ci", 1)
	f.drifted("web")

	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "status")
	want := `1 of 2 objects drifted

  OBJECT                  SEVERITY   WHO     CHANGE             SINCE   NEXT
✗ deployment.apps/web     Medium     alice   replicas 1 → 5     60s     no policy selects the object
✓ 1 in sync (status --all shows them)

Writer and proof:  kubectl plumbline blame deployment.apps/web -n ` + f.namespace + `
Undo or keep:      kubectl plumbline diff deployment.apps/web -n ` + f.namespace + ` │ accept deployment.apps/web -n ` + f.namespace + `
`
	if diff := cmp.Diff(answer{Stdout: want}, got, ages); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}

	cases := map[string]struct {
		args []string
		code int
		want string // on standard output
		also string // on standard error
	}{
		"a drifted object fails a pipeline":            {args: []string{"status", "--exit-code"}, code: 1, want: "deployment.apps/web"},
		"an object in sync does not":                   {args: []string{"status", "deploy/aa", "--exit-code"}, want: "InSync"},
		"a namespace without Baselines is no success":  {args: []string{"status", "--exit-code", "-n", "default"}, code: 2, also: "No guarded objects found in default namespace."},
		"an error with --exit-code is told from drift": {args: []string{"status", "nosuch/x", "--exit-code"}, code: 2, also: `error: the server doesn't have a resource type "nosuch"`},
		"short name":                                     {args: []string{"status", "deploy/web", "--no-headers"}, want: "deployment.apps/web"},
		"plural with version and group":                  {args: []string{"status", "deployments.v1.apps", "web", "--no-headers"}, want: "deployment.apps/web"},
		"kind":                                           {args: []string{"status", "Deployment", "web", "--no-headers"}, want: "deployment.apps/web"},
		"a type alone":                                   {args: []string{"status", "deploy", "-o", "name"}, want: "baseline.plumbline.dev/deployments.apps.web"},
		"a type with a label selects objects":            {args: []string{"status", "deploy", "-l", "app=aa", "--all", "--no-headers"}, want: "deployment.apps/aa"},
		"a label alone selects Baselines":                {args: []string{"status", "-l", v1alpha1.LabelTargetKind + "=Deployment", "-o", "name"}, want: "baseline.plumbline.dev/deployments.apps.aa"},
		"jsonpath":                                       {args: []string{"status", "deploy/web", "-o", "jsonpath={.status.findings[0].actor.user}"}, want: "alice"},
		"every namespace":                                {args: []string{"status", "-A", "-o", "wide"}, want: f.namespace},
		"a name across namespaces is a mistake":          {args: []string{"status", "deploy/web", "-A"}, code: 1, also: "error: a resource cannot be retrieved by name across all namespaces"},
		"a cluster-scoped type is refused":               {args: []string{"status", "node/n"}, code: 1, also: "nodes are not namespaced"},
		"an unguarded object is named":                   {args: []string{"status", "deploy/none"}, code: 1, also: "deployment.apps/none in namespace " + f.namespace + " has no Baseline"},
		"of several names the found ones are shown too":  {args: []string{"status", "deploy", "none", "web"}, code: 1, want: "deployment.apps/web", also: "deployment.apps/none"},
		"an unknown format is a mistake in the command":  {args: []string{"status", "-o", "xml"}, code: 1, also: "allowed formats are: "},
		"a selector that cannot be parsed is a mistake":  {args: []string{"status", "-l", "a b c"}, code: 1, also: `unable to parse selector "a b c"`},
		"a resource of another API group is not matched": {args: []string{"status", "cm/web"}, code: 1, also: "configmap/web"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := plumbline(t.Context(), kubeconfig, f.namespace, "", tc.args...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.want) || !strings.Contains(got.Stderr, tc.also) {
				t.Errorf("%q gave %d\nstdout: %s\nstderr: %s\nwant %d, %q and %q", tc.args, got.Code, got.Stdout, got.Stderr, tc.code, tc.want, tc.also)
			}
		})
	}
}

func TestStatus_JSONIsWhatKubectlGetPrints(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.drifted("web")
	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "status", "-o", "json")
	want, err := child.Bind(exec.CommandContext(t.Context(), binDir+"/kubectl", "--kubeconfig", kubeconfig, "-n", f.namespace, "get", "baselines", "-o", "json")).Output()
	must(t, err)
	var a, b map[string]any
	must(t, json.Unmarshal([]byte(got.Stdout), &a))
	must(t, json.Unmarshal(want, &b))
	if diff := cmp.Diff(b["items"], a["items"]); diff != "" {
		t.Errorf("items (-kubectl get +status):\n%s", diff)
	}
}

func TestDiff_ComparesAuthorizedWithLive(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	d := f.deployment("web", "nginx:1.27")
	baseline := f.authorize("web", "ci", 1)

	if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "deploy/web"); got != (answer{}) {
		t.Errorf("diff of an object in sync gave %+v", got)
	}

	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	d.Spec.Template.Spec.Containers[0].Image = "nginx:1.28"
	d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DB_PASSWORD", Value: "hunter2-live"}}
	d.Spec.Replicas = new(int32(4))
	d.Spec.MinReadySeconds = 7
	must(t, kube.Update(t.Context(), d))
	f.drift(baseline, finding("/spec/replicas", "1", "4", "hpa", 0))
	guard := &v1alpha1.SpecGuard{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "apps"},
		Spec: v1alpha1.GuardSpec{
			Resources: []v1alpha1.GuardedResource{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Ignore:    []string{"/spec/minReadySeconds"},
		},
	}
	must(t, kube.Create(t.Context(), guard))
	baseline.Status.Guards = []string{"SpecGuard/apps"}
	baseline.Status.Masks = []v1alpha1.Mask{{
		Path: "/spec/replicas", Value: "4", Rule: "autoscaler",
		Actor: v1alpha1.Actor{User: "hpa", Class: v1alpha1.ActorExpected, Source: v1alpha1.ActorSourceAdmission},
	}}
	must(t, kube.Status().Update(t.Context(), baseline))

	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "deploy", "web")
	want := answer{Code: 1, Stdout: `--- deployment.apps/web  authorized (revision 1, by ci, 60s ago)
+++ deployment.apps/web  live (generation 2)
@@ /spec/template/spec/containers/[name=app]/env @@
+[
+  {
+    "name": "DB_PASSWORD",
+    "value": "[redacted, ≤16 bytes]"
+  }
+]
@@ /spec/template/spec/containers/[name=app]/image @@
-"nginx:1.27"
+"nginx:1.28"
# expected: /spec/replicas 4 by hpa (rule autoscaler)
`}
	if diff := cmp.Diff(want, got, ages); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}

	// The mask covers the value that the autoscaler left, not the field.
	f.scale("web", 9)
	if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "deploy/web"); !strings.Contains(got.Stdout, "@@ /spec/replicas @@\n-1\n+9\n") {
		t.Errorf("a foreign value under a mask is not shown: %+v", got)
	}

	must(t, kube.Delete(t.Context(), d))
	gone := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "deploy/web")
	if gone.Code != 1 || !strings.Contains(gone.Stdout, "@@ (object) @@ is gone, and no trusted writer has removed it") {
		t.Errorf("diff of a missing object gave %+v", gone)
	}
	if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "deploy/none"); got.Code != 2 {
		t.Errorf("a failing diff exits with %d, not 2: %s", got.Code, got.Stderr)
	}
	if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "diff", "--no-such-flag"); got.Code != 2 {
		t.Errorf("a mistaken diff exits with %d, not 2: %s", got.Code, got.Stderr)
	}
}

func TestDiff_NamesTheGuardThatCannotBeRead(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	baseline := f.drifted("web")
	baseline.Status.Guards = []string{"ClusterSpecGuard/platform"}
	must(t, kube.Status().Update(t.Context(), baseline))
	grant(t, f.namespace, "alice", rule("apps", "get", "deployments"), rule("plumbline.dev", "get", "baselines", "baselinerevisions"))

	got := plumbline(t.Context(), alice, f.namespace, "", "diff", "deploy/web")
	if got.Code != 1 || !strings.Contains(got.Stdout, "@@ /spec/replicas @@") {
		t.Errorf("diff gave %+v", got)
	}
	if want := "Warning: ClusterSpecGuard/platform cannot be read (forbidden)"; !strings.Contains(got.Stderr, want) {
		t.Errorf("stderr %q does not hold %q", got.Stderr, want)
	}
}

func TestBlameAndHistory_NameWhoDidWhat(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	f.deployment("web", "nginx:1.27")
	f.authorize("web", "ci", 1)
	f.scale("web", 2)
	baseline := f.authorize("web", "release", 2)
	f.scale("web", 5)
	f.drift(baseline, finding("/spec/replicas", "2", "5", "alice", 0))

	got := plumbline(t.Context(), kubeconfig, f.namespace, "", "blame", "deploy/web")
	want := answer{Stdout: `deployment.apps/web  Drifted · Medium (50) · since 60s
Baseline: revision 2 (Created) by release, 60s ago

FIELD      BEFORE   AFTER   WHO     TRUSTED   PROOF     WHEN
replicas   2        5       alice   no        webhook   60s
`}
	if diff := cmp.Diff(want, got, ages); diff != "" {
		t.Errorf("blame (-want +got):\n%s", diff)
	}

	history := plumbline(t.Context(), kubeconfig, f.namespace, "", "history", "deploy/web", "--no-headers")
	if !strings.HasPrefix(history.Stdout, "2     release") || !strings.Contains(history.Stdout, "\n1     ci") {
		t.Errorf("history is not newest first:\n%s%s", history.Stdout, history.Stderr)
	}
	between := plumbline(t.Context(), kubeconfig, f.namespace, "", "history", "deploy/web", "--diff", "1..2")
	wantDiff := "--- deployment.apps/web  revision 1\n+++ deployment.apps/web  revision 2\n@@ /spec/replicas @@\n-1\n+2\n"
	if diff := cmp.Diff(answer{Stdout: wantDiff}, between); diff != "" {
		t.Errorf("history --diff (-want +got):\n%s", diff)
	}
	body := plumbline(t.Context(), kubeconfig, f.namespace, "", "history", "deploy/web", "--revision", "1", "-o", "json")
	var spec struct {
		Spec appsv1.DeploymentSpec `json:"spec"`
	}
	must(t, json.Unmarshal([]byte(body.Stdout), &spec))
	if *spec.Spec.Replicas != 1 {
		t.Errorf("revision 1 has %d replicas", *spec.Spec.Replicas)
	}
	if got := plumbline(t.Context(), kubeconfig, f.namespace, "", "history", "deploy/web", "--revision", "7"); got.Code != 1 || got.Stderr != "error: revision 7 of deployment.apps/web does not exist or is no longer kept\n" {
		t.Errorf("a revision that is not there gave %+v", got)
	}
}

func TestHash_TellsLiveFromStamp(t *testing.T) {
	f := fixture{t: t, namespace: newNamespace(t)}
	d := f.deployment("web", "nginx:1.27")
	stamp := f.hash("web")
	must(t, kube.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	d.Annotations = map[string]string{v1alpha1.AnnotationSpecHash: stamp}
	must(t, kube.Update(t.Context(), d))

	fresh := plumbline(t.Context(), kubeconfig, f.namespace, "", "hash", "deploy/web")
	if strings.Count(fresh.Stdout, stamp) != 2 || !strings.Contains(fresh.Stdout, "equals the live hash") {
		t.Errorf("hash of a fresh object gave %+v", fresh)
	}
	f.scale("web", 3)
	stale := plumbline(t.Context(), kubeconfig, f.namespace, "", "hash", "deploy", "web", "-o", "json")
	var answered map[string]string
	must(t, json.Unmarshal([]byte(stale.Stdout), &answered))
	if answered["live"] != f.hash("web") || answered["stamp"] != stamp || !strings.Contains(answered["verdict"], "differs from the object") {
		t.Errorf("hash of a scaled object gave %v", answered)
	}
	// What kubectl reads and what the plugin reads hash alike.
	manifest, err := child.Bind(exec.CommandContext(t.Context(), binDir+"/kubectl", "--kubeconfig", kubeconfig, "-n", f.namespace, "get", "deploy", "web", "-o", "yaml")).Output()
	must(t, err)
	offline := plumbline(t.Context(), kubeconfig, f.namespace, string(manifest), "hash", "-f", "-")
	if offline.Stdout != answered["live"]+"\n" {
		t.Errorf("offline %q, live %q", offline.Stdout, answered["live"])
	}
}
