// SPDX-License-Identifier: Apache-2.0

//go:build integration

package assess

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plumbline-dev/plumbline/test/harness/child"
	"github.com/plumbline-dev/plumbline/test/harness/guarded"
)

const hotfix = "registry.example/shop/web:hotfix"

// manifest is what is in Git: the Deployment of all tests with an image.
func (w *world) manifest(image string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":%q},
"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
"spec":{"containers":[{"name":"app","image":%q}]}}}}`, w.namespace, image)
}

// kubectl runs kubectl as a user, with a manifest on standard input.
func (w *world) kubectl(user, manifest string, args ...string) {
	w.t.Helper()
	args = append(args, "--kubeconfig", w.kubeconfigFile(), "-n", w.namespace, "--as", user, "--as-group", "system:masters")
	cmd := child.Bind(exec.CommandContext(w.Ctx(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), args...))
	cmd.Stdin = strings.NewReader(manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("running %s: %v\n%s", cmd, err, out)
	}
}

// helm installs a chart that consists of the manifest, or upgrades its release.
func (w *world) helm(user, manifest string) {
	w.t.Helper()
	chart := filepath.Join(w.t.TempDir(), "web")
	w.Must(os.MkdirAll(filepath.Join(chart, "templates"), 0o700))
	w.Must(os.WriteFile(filepath.Join(chart, "Chart.yaml"), []byte("apiVersion: v2\nname: web\nversion: 0.1.0\n"), 0o600))
	w.Must(os.WriteFile(filepath.Join(chart, "templates", "web.yaml"), []byte(manifest), 0o600))
	cmd := child.Bind(exec.CommandContext(w.Ctx(), os.Getenv("HELM"), "upgrade", "--install", "web", chart,
		"--kubeconfig", w.kubeconfigFile(), "-n", w.namespace, "--kube-as-user", user, "--kube-as-group", "system:masters"))
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("running %s: %v\n%s", cmd, err, out)
	}
}

// pipelines are the ways by which CI brings Git into the cluster.
var pipelines = map[string]func(w *world, user, image string){
	"kubectl apply": func(w *world, user, image string) {
		w.kubectl(user, w.manifest(image), "apply", "-f", "-")
	},
	"kubectl apply --server-side": func(w *world, user, image string) {
		w.kubectl(user, w.manifest(image), "apply", "--server-side", "--field-manager", "ci", "-f", "-")
	},
	"helm upgrade": func(w *world, user, image string) { w.helm(user, w.manifest(image)) },
}

// D6 of the review of remediation: the hotfix went into Git, CI applied it as it was, and a
// policy put the old image back.
func TestAHotfixThatCIAppliesIsAuthorized(t *testing.T) {
	start(t)
	for name, apply := range pipelines {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.UnderGuard()
			apply(w, ci, guarded.Image)
			first := guarded.Authorized(w.UntilIs("web", "InSync"))
			w.kubectl(alice, "", "set", "image", "deployment/web", "app="+hotfix)
			w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
			apply(w, ci, hotfix)
			b := w.UntilIs("web", "InSync")
			if got := guarded.Authorized(b); got != first+1 || b.Spec.Authorized.By != ci {
				t.Errorf("revision %d by %s is authorized, want %d by CI", got, b.Spec.Authorized.By, first+1)
			}
			if image := w.Live("web").Spec.Template.Spec.Containers[0].Image; image != hotfix {
				t.Errorf("image %s", image)
			}
		})
	}
}

// A client chooses the name of its manager, and each writer may set the annotation of kubectl.
func TestAnApplyInTheNameOfCIAuthorizesNothing(t *testing.T) {
	start(t)
	for name, apply := range pipelines {
		if name == "helm upgrade" {
			continue // mallory has no right to the release
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.UnderGuard()
			apply(w, ci, guarded.Image)
			w.UntilIs("web", "InSync")
			w.kubectl(mallory, "", "set", "image", "deployment/web", "app="+hotfix)
			drifted := "Drifted: Changed /spec/template/spec/containers/[name=app]/image by mallory (Untrusted, WriterStamp)"
			before := guarded.Authorized(w.UntilIs("web", drifted))
			apply(w, mallory, hotfix)
			w.stays("web", drifted)
			// CI writes something else meanwhile, under the same name.
			w.kubectl(ci, "", "label", "deployment/web", "team=shop", "--field-manager", "ci")
			w.stays("web", drifted)
			if got := guarded.Authorized(w.UntilIs("web", drifted)); got != before {
				t.Errorf("revision %d is authorized, want %d", got, before)
			}
		})
	}
}

// The pipeline runs while no assessor does.
func TestAHotfixThatCIAppliesUnwatchedIsAuthorized(t *testing.T) {
	for name, apply := range pipelines {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := start(t)
			w.UnderGuard()
			apply(w, ci, guarded.Image)
			w.UntilIs("web", "InSync")
			w.kubectl(alice, "", "set", "image", "deployment/web", "app="+hotfix)
			w.UntilIs("web", "Drifted: Changed /spec/template/spec/containers/[name=app]/image by alice (Untrusted, WriterStamp)")
			a.Halt(t)
			apply(w, ci, hotfix)
			start(t)
			w.UntilIs("web", "InSync")
		})
	}
}
