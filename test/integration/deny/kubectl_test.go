// SPDX-License-Identifier: Apache-2.0

//go:build integration

package deny

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/poll"
)

type ctx = context.Context

const applyPatch = types.ApplyPatchType

// kubectl runs the kubectl beside the API server and returns all it printed.
func kubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	cluster := &harness.Cluster{Kubeconfig: kubeconfig, Path: filepath.Clean(os.Getenv("KUBEBUILDER_ASSETS"))}
	result, err := cluster.Run(t.Context(), append([]string{"kubectl"}, args...), harness.WithStdin(stdin))
	return result.Output(), err
}

// tina runs kubectl as a tenant. She says it again where a controller wrote the
// object's status between kubectl's read and its write: that conflict is found before
// any policy is asked.
func (s shop) tina(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	args = append(args, "-n", s.namespace, "--as", "tina", "--as-group", "tenants")
	for {
		out, err := kubectl(t, stdin, args...)
		if err == nil || !strings.Contains(out, "the object has been modified") {
			return out, err
		}
		t.Logf("again after a conflict: kubectl %s", strings.Join(args, " "))
	}
}

func eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	poll.Until(t, patience, what, check)
}

func wantRefusal(t testing.TB, out string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(out, "ValidatingAdmissionPolicy 'plumbline-deny'") || !strings.Contains(out, "may not ") {
		t.Fatalf("got %v, want a refusal by the Deny policy:\n%s", err, out)
	}
}

// TestKubectl: the commands that do more than one request, or replay the past.
func TestKubectl(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)

	t.Run("replace --force deletes first, so nothing happens", func(t *testing.T) {
		d := s.deployed(t, "forced")
		out, err := s.tina(t, manifest(t, d.Namespace, d.Name), "replace", "--force", "-f", "-")
		wantRefusal(t, out, err)
		var after appsv1.Deployment
		mustDo(t, admin.Get(t.Context(), client.ObjectKeyFromObject(d), &after))
		if after.UID != d.UID || after.DeletionTimestamp != nil {
			t.Errorf("it was replaced: %+v", after.ObjectMeta)
		}
	})
	t.Run("rollout undo goes back to what was authorized once, and is refused", func(t *testing.T) {
		d := s.rolledTwice(t, "undone")
		out, err := s.tina(t, "", "rollout", "undo", "deployment/"+d.Name)
		wantRefusal(t, out, err)
	})
	t.Run("rollout restart", func(t *testing.T) {
		d := s.deployed(t, "restarted")
		if out, err := s.tina(t, "", "rollout", "restart", "deployment/"+d.Name); err != nil {
			t.Errorf("refused: %v\n%s", err, out)
		}
	})
	t.Run("scale", func(t *testing.T) {
		d := s.deployed(t, "scaled")
		out, err := s.tina(t, "", "scale", "deployment/"+d.Name, "--replicas", "9")
		wantRefusal(t, out, err)
	})
	t.Run("edit, apply and diff of another image", func(t *testing.T) {
		d := s.deployed(t, "applied")
		changed := strings.Replace(manifest(t, d.Namespace, d.Name), "shop:1", "shop:2", 1)
		for _, args := range [][]string{{"apply", "-f", "-"}, {"apply", "--server-side", "--force-conflicts", "-f", "-"}, {"replace", "-f", "-"}, {"diff", "-f", "-"}} {
			out, err := s.tina(t, changed, args...)
			wantRefusal(t, out, err)
		}
	})
	t.Run("delete -f and delete --all", func(t *testing.T) {
		d := s.deployed(t, "deleted")
		out, err := s.tina(t, manifest(t, d.Namespace, d.Name), "delete", "-f", "-")
		wantRefusal(t, out, err)
		out, err = s.tina(t, "", "delete", "deployments", "--all")
		wantRefusal(t, out, err)
	})
	t.Run("a namespace label, which edit does not cover", func(t *testing.T) {
		out, err := s.tina(t, "", "label", "namespace", s.namespace, "kubernetes.io/metadata.name-", "x=y")
		if err == nil || !strings.Contains(out, `cannot patch resource "namespaces"`) && !strings.Contains(out, `cannot get resource "namespaces"`) {
			t.Errorf("got %v: %s", err, out)
		}
	})
	t.Run("deleting the namespace or the guard, which edit does not cover", func(t *testing.T) {
		for _, what := range []string{"namespace/" + s.namespace, "clusterspecguard/" + s.namespace} {
			out, err := s.tina(t, "", "delete", what)
			if err == nil || !strings.Contains(out, "cannot delete resource") {
				t.Errorf("%s: got %v: %s", what, err, out)
			}
		}
	})
}

func manifest(t testing.TB, namespace, name string) string {
	t.Helper()
	d := deployment(namespace, name)
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	out, err := yaml.Marshal(d)
	mustDo(t, err)
	return string(out)
}

// rolledTwice is a Deployment that ci rolled to a second image; the deployment
// controller made both ReplicaSets.
func (s shop) rolledTwice(t testing.TB, name string, options ...act) *appsv1.Deployment {
	t.Helper()
	d := s.deployed(t, name)
	await := func(n int) {
		eventually(t, fmt.Sprintf("%d ReplicaSets", n), func() error {
			var sets appsv1.ReplicaSetList
			if err := admin.List(t.Context(), &sets, client.InNamespace(s.namespace), client.MatchingLabels{"app": name}); err != nil {
				return err
			}
			if len(sets.Items) != n {
				return fmt.Errorf("%d ReplicaSets", len(sets.Items))
			}
			return nil
		})
	}
	await(1)
	mustDo(t, all(options...)(t.Context(), as(t, ci), d))
	// Else the controller may see both writes at once, and the first ReplicaSet
	// never gets what the options put on the Deployment.
	eventually(t, "the controller has seen the options", func() error {
		var live appsv1.Deployment
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(d), &live); err != nil {
			return err
		}
		if live.Status.ObservedGeneration != live.Generation {
			return fmt.Errorf("generation %d, seen %d", live.Generation, live.Status.ObservedGeneration)
		}
		return nil
	})
	mustDo(t, setImage(t.Context(), as(t, ci), d))
	await(2)
	return d
}

// TestUndoReplaysAReason: a reason is copied to the ReplicaSet, and undo brings
// it back. Who has the verb gets through with a reason that is not of today;
// who has not does not. The reference says so.
func TestUndoReplaysAReason(t *testing.T) {
	s := newShop(t, nil)
	s.guarded(t)
	s.firefighter(t)
	d := s.rolledTwice(t, "web", merge(`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":"incident 7"}}}`))
	eventually(t, "the reason on the old ReplicaSet", func() error {
		var sets appsv1.ReplicaSetList
		if err := admin.List(t.Context(), &sets, client.InNamespace(s.namespace)); err != nil {
			return err
		}
		for _, set := range sets.Items {
			if set.Annotations["plumbline.dev/break-glass-reason"] == "incident 7" {
				return nil
			}
		}
		return fmt.Errorf("%d ReplicaSets, none with the reason", len(sets.Items))
	})
	mustDo(t, merge(`{"metadata":{"annotations":{"plumbline.dev/break-glass-reason":null}}}`)(t.Context(), as(t, ci), d))
	out, err := s.tina(t, "", "rollout", "undo", "deployment/"+d.Name)
	wantRefusal(t, out, err)
	if out, err := kubectl(t, "", "rollout", "undo", "deployment/"+d.Name, "-n", s.namespace, "--as", "fred", "--as-group", "tenants"); err != nil {
		t.Errorf("undo by who has the verb is refused; then the reference is out of date: %v\n%s", err, out)
	}
}
