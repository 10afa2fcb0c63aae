// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package demo

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/test/harness"
	"github.com/plumbline-dev/plumbline/test/harness/rotation"
)

// TestTheDemoOnSomebodyElsesCluster tells what its user lives through, in order:
// refusals that change nothing, the story, and the end. With PLUMBLINE_LONG=1 the demo
// tells the story a second time, over the objects that the first time has left.
func TestTheDemoOnSomebodyElsesCluster(t *testing.T) {
	s := newSomebody(t)
	t.Run("what is in the way is told before anything is built", func(t *testing.T) { refusals(t, s) })
	t.Run("a registry that the nodes cannot reach is told before the chart is installed", func(t *testing.T) {
		// The node finds nobody at its own loopback; only the name localhost is redirected.
		name := strings.Replace(s.registry, "localhost", "127.0.0.1", 1)
		r := s.demo(t, "REGISTRY="+name)
		s.wantRefusal(t, r, "the cluster cannot pull "+name+"/plumbline/shop:dev-", "connection refused", "docs/guides/demo.md")
		// The kubelet's first answer decides; Helm, which would wait for its time-out, is not begun.
		if strings.Contains(r.output, "installing the chart") || !strings.Contains(r.output, "trying whether the cluster can pull them") {
			t.Error("the demo went on to the installation, where a time-out tells that the images do not come")
		}
		if left := s.strays(t.Context(), t); len(left) > 0 {
			t.Errorf("refused, and yet there is:\n%s", strings.Join(left, "\n"))
		}
	})
	t.Run("a demo that is broken off says how to remove what it has left", func(t *testing.T) { brokenOff(t, s) })
	t.Run("the demo runs", func(t *testing.T) { wholeDemo(t, s) })
}

// wholeDemo runs the demo to its end, and then removes it. The demo on a cluster of its own tells the story in
// each rotation.
func wholeDemo(t *testing.T, s *somebody) {
	rotation.Share(t, 3)
	var told string
	rounds := []string{"the story is told to its end"}
	if os.Getenv("PLUMBLINE_LONG") == "1" {
		rounds = append(rounds, "and a second time")
	}
	for _, round := range rounds {
		if !t.Run(round, func(t *testing.T) { told = story(t, s) }) {
			return
		}
	}
	t.Run("the images came from the registry, under a name of their content", func(t *testing.T) {
		images := s.must(t, "kubectl", "get", "pods", "-A", "-o", `jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}`, "-l", "app.kubernetes.io/part-of=plumbline")
		pattern := regexp.MustCompile("^" + regexp.QuoteMeta(s.registry) + `/plumbline/(webhook|assessor|redis|xds|envoy):dev-[0-9a-f]{12}$`)
		for image := range strings.FieldsSeq(images) {
			if !pattern.MatchString(image) {
				t.Errorf("image %s", image)
			}
		}
		if strings.Count(images, "\n") < 4 {
			t.Errorf("too few pods run:\n%s", images)
		}
	})
	t.Run("its last words remove everything", func(t *testing.T) {
		cleanUp(t, s, told, "What is left in this cluster, and how to remove it")
	})
}

// refusals are mistakes of a user, each through the command that a user types.
func refusals(t *testing.T, s *somebody) {
	t.Run("no registry", func(t *testing.T) {
		s.wantRefusal(t, s.demo(t, "REGISTRY="), "CLUSTER=current needs REGISTRY", "make demo CLUSTER=current REGISTRY=ghcr.io/me")
	})
	t.Run("a registry that does not answer, and no cluster, both at once", func(t *testing.T) {
		r := s.demo(t, "REGISTRY=localhost:1/me", "KUBECONFIG="+filepath.Join(t.TempDir(), "none"))
		s.wantRefusal(t, r, "images cannot be pushed: asking to push localhost:1/me/plumbline/webhook:dev", "connection refused",
			"the cluster does not answer: the kubeconfig has no current context")
	})
	t.Run("a cluster that does not answer", func(t *testing.T) {
		config, err := os.ReadFile(s.admin.Kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		gone := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(gone, regexp.MustCompile(`https://[^"\s]+`).ReplaceAll(config, []byte("https://127.0.0.1:1")), 0o600); err != nil {
			t.Fatal(err)
		}
		s.wantRefusal(t, s.demo(t, "KUBECONFIG="+gone), "the cluster does not answer: asking for the version", "connection refused", "kubectl config use-context")
	})
	t.Run("a tenant", func(t *testing.T) {
		s.must(t, "kubectl", "create", "rolebinding", "tenant", "-n", "default", "--clusterrole=edit", "--serviceaccount=default:default")
		defer s.must(t, "kubectl", "delete", "rolebinding", "tenant", "-n", "default")
		tenant, err := s.admin.As(t.Context(), "default", "default", t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s.wantRefusal(t, s.demo(t, "KUBECONFIG="+tenant.Kubeconfig), "you may not ", " more\n    installing Plumbline takes the rights of a cluster administrator")
	})
	t.Run("somebody's Plumbline, kinds and namespace", func(t *testing.T) {
		s.apply(t, foreign)
		defer s.must(t, "kubectl", "delete", "validatingwebhookconfiguration/plumbline", "namespace/plumbline-demo-shop")
		r := s.demo(t)
		s.wantRefusal(t, r, "Plumbline is installed already, as release guard in namespace security", "namespace plumbline-demo-shop exists, and the demo did not make it")
	})
	if left := s.strays(t.Context(), t); len(left) > 0 {
		t.Errorf("refused, and yet there is:\n%s", strings.Join(left, "\n"))
	}
}

// brokenOff lets the installation fail in the middle, when most of it is there.
func brokenOff(t *testing.T, s *somebody) {
	s.apply(t, obstacle)
	r := s.demo(t)
	s.wantRefusal(t, r, "no deployments here", "The demo did not get to its end")
	s.must(t, "kubectl", "delete", "validatingadmissionpolicy/obstacle", "validatingadmissionpolicybinding/obstacle")
	cleanUp(t, s, r.output, "The demo did not get to its end")
}

// obstacle is in force long before the images are built and pushed.
const obstacle = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: obstacle}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
  validations: [{expression: "false", message: no deployments here}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: obstacle}
spec: {policyName: obstacle, validationActions: [Deny]}
`

// foreign is as much of another installation as the preflight goes by.
const foreign = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: plumbline
  annotations: {meta.helm.sh/release-name: guard, meta.helm.sh/release-namespace: security}
webhooks: []
---
apiVersion: v1
kind: Namespace
metadata: {name: plumbline-demo-shop}
`

// story runs the demo to its end and returns what it said.
func story(t *testing.T, s *somebody) string {
	r := s.demo(t)
	if r.status != 0 {
		t.Fatalf("exit status %d", r.status)
	}
	var titles []string
	for _, match := range regexp.MustCompile(`(?m)^-{72}\n\d+\. (.*)\n-{72}$`).FindAllStringSubmatch(r.output, -1) {
		titles = append(titles, match[1])
	}
	want := []string{
		"CI deploys the shop: two services",
		"A human sets an image by hand",
		"A human scales by hand",
		"A human edits a port",
		"An autoscaler scales: expected, not drift",
		"A rollout restart: benign",
		"A container is removed",
		"A pod that no controller made",
		"CI deploys a new version: authorized",
		"A change while the webhook is scaled to 0 and Redis is gone",
		"What there is to look at",
		"A policy that only watches",
		"The policy is activated: the worst first, three in an hour",
		"A bot that undoes every repair is not fought for ever",
		"So much drifts at once that one cause must be assumed",
		"Did the repairs help?",
		"The evidence of what was done",
		"Traffic is divided between two versions",
		"A new version proves itself, and a bad one is rolled back",
		"What to try next",
		"What is left in this cluster, and how to remove it",
	}
	if diff := cmp.Diff(want, titles); diff != "" {
		t.Errorf("scenes (-want +got):\n%s", diff)
	}
	return r.output
}

// cleanUp types what the demo said, and looks for what is left.
func cleanUp(t *testing.T, s *somebody, told, after string) {
	if len(s.strays(t.Context(), t)) == 0 {
		t.Fatal("the list of what is left is empty while installed: the check cannot fail")
	}
	_, last, _ := strings.Cut(told, after)
	commands := regexp.MustCompile(`(?m)^  ((?:kubectl|helm) .*)$`).FindAllStringSubmatch(last, -1)
	if len(commands) == 0 {
		t.Fatalf("the demo names no command:\n%s", last)
	}
	// The second time there is nothing to remove, as after a demo that was broken off.
	for range 2 {
		for _, command := range commands {
			s.must(t, strings.Fields(command[1])...)
		}
	}
	err := harness.Eventually(t.Context(), "nothing left", time.Minute, func(ctx context.Context) (bool, string) {
		left := s.strays(ctx, t)
		return len(left) == 0, strings.Join(left, "\n")
	})
	if err != nil {
		t.Error(err)
	}
}

// strays lists every object of the cluster, of every kind, that has to do with us.
func (s *somebody) strays(ctx context.Context, t *testing.T) []string {
	t.Helper()
	listed, err := s.admin.Kubectl(ctx, "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	// Events say what has happened, not what is there.
	kinds := slices.DeleteFunc(strings.Fields(listed), func(kind string) bool { return strings.HasPrefix(kind, "events") })
	all, err := s.admin.Kubectl(ctx, "get", strings.Join(kinds, ","), "-A", "--ignore-not-found",
		"-o", `jsonpath={range .items[*]}{.kind}{" "}{.metadata.namespace}{" "}{.metadata.name}{"\n"}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for line := range strings.Lines(all) {
		if line = strings.TrimSpace(line); strings.Contains(line, "plumbline") {
			left = append(left, line)
		}
	}
	return left
}
