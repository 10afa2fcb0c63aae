// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/test/harness"
)

const patience = 90 * time.Second

// story holds what the scenes share.
type story struct {
	*narrator
	admin *harness.Cluster
	ci    *harness.Cluster
	bot   *harness.Cluster
	image string
	// otherImage has another tag of the same repository.
	otherImage string
}

// scene is one act; its name is what a failure is reported under.
type scene struct {
	name string
	play func(*story, context.Context) error
}

func scenes() []scene {
	return []scene{
		{"CI deploys the shop", (*story).deploy},
		{"a human sets an image", (*story).setImage},
		{"a human scales", (*story).scale},
		{"a human edits a port", (*story).editPort},
		{"an autoscaler scales", (*story).autoscale},
		{"a rollout restart", (*story).restart},
		{"a container is removed", (*story).removeContainer},
		{"a pod that no controller made", (*story).runPod},
		{"CI deploys a new version", (*story).deployNewVersion},
		{"a change while Plumbline's webhook and Redis are gone", (*story).changeInTheDark},
		{"what there is to look at", (*story).look},
		{"a policy that only watches", (*story).observe},
		{"the policy is activated", (*story).remediate},
		{"a fight with a bot", (*story).fight},
		{"a mass drift freezes", (*story).freeze},
		{"did the repairs help", (*story).assess},
		{"the evidence is verified", (*story).prove},
		{"traffic is divided", (*story).divide},
		{"a new version proves itself", (*story).rollOut},
	}
}

func (s *story) deploy(ctx context.Context) error {
	s.heading("CI deploys the shop: two services")
	s.say("The guard trusts one identity, the CI's service account, and expects the\nautoscaler to move replicas. Everybody else's change is drift.")
	if err := s.release(ctx, "1.0"); err != nil {
		return err
	}
	for _, name := range []string{"web", "cart"} {
		if err := s.await(ctx, name, "in sync", inSync); err != nil {
			return err
		}
		if _, err := s.admin.Kubectl(ctx, "rollout", "status", "deployment/"+name, "-n", shopNamespace, "--timeout=90s"); err != nil {
			return err
		}
	}
	return s.baselines(ctx)
}

func (s *story) setImage(ctx context.Context) error {
	s.heading("A human sets an image by hand")
	s.say("%s may do this by RBAC. The webhook warns her while she does it, and the\nchange is drift, with her name.", human)
	if err := s.asHuman(ctx, human, "set", "image", "deployment/web", "app="+s.otherImage); err != nil {
		return err
	}
	return s.awaitFinding(ctx, "web", "[name=app]/image", human)
}

func (s *story) scale(ctx context.Context) error {
	s.heading("A human scales by hand")
	s.say("A write through /scale carries no annotations and is seen by no webhook on\ndeployments; Plumbline registers it too.")
	if err := s.asHuman(ctx, human, "scale", "deployment/web", "--replicas=2"); err != nil {
		return err
	}
	return s.awaitFinding(ctx, "web", "/spec/replicas", human)
}

func (s *story) editPort(ctx context.Context) error {
	s.heading("A human edits a port")
	args := []string{"kubectl", "edit", "deployment/web", "-n", shopNamespace, "--as", human}
	if err := s.runAs(ctx, s.admin, shown(args)+"   # containerPort: 8080 -> 9090", args,
		harness.WithEnv("KUBE_EDITOR=sed -i s/containerPort:.8080/containerPort:\\ 9090/")); err != nil {
		return err
	}
	return s.awaitFinding(ctx, "web", "ontainerPort", human)
}

func (s *story) autoscale(ctx context.Context) error {
	s.heading("An autoscaler scales: expected, not drift")
	s.say("Raising minReplicas makes the HPA act without a metrics server.")
	if err := s.ci.Apply(ctx, autoscalerManifest, "-n", shopNamespace); err != nil {
		return err
	}
	if err := s.runAs(ctx, s.ci, "kubectl patch hpa cart -p '{\"spec\":{\"minReplicas\":3}}'   # by CI",
		[]string{"kubectl", "patch", "hpa", "cart", "-n", shopNamespace, "-p", `{"spec":{"minReplicas":3}}`}); err != nil {
		return err
	}
	if err := s.await(ctx, "cart", "replicas masked for the autoscaler", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && len(b.Status.Masks) == 1 && b.Status.Masks[0].Value == "3"
	}); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "get", "baseline", baselineOf("cart"), "-n", shopNamespace,
		"-o", `jsonpath={.status.state}: {.status.masks[0].path} = {.status.masks[0].value}, moved by {.status.masks[0].actor.user} (rule {.status.masks[0].rule}){"\n"}`)
}

func (s *story) restart(ctx context.Context) error {
	s.heading("A rollout restart: benign")
	if err := s.asHuman(ctx, human, "rollout", "restart", "deployment/cart"); err != nil {
		return err
	}
	generation, err := s.admin.Kubectl(ctx, "get", "deployment/cart", "-n", shopNamespace, "-o", "jsonpath={.metadata.generation}")
	if err != nil {
		return err
	}
	if err := s.await(ctx, "cart", "in sync after the restart was seen", func(b *v1alpha1.Baseline) bool {
		return inSync(b) && fmt.Sprint(b.Status.Observed.Generation) == generation
	}); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "get", "baseline", baselineOf("cart"), "-n", shopNamespace)
}

func (s *story) removeContainer(ctx context.Context) error {
	s.heading("A container is removed")
	if err := s.asHuman(ctx, otherHuman, "patch", "deployment/cart", "--type=json",
		"-p", `[{"op":"remove","path":"/spec/template/spec/containers/1"}]`); err != nil {
		return err
	}
	if err := s.awaitFinding(ctx, "cart", "[name=audit]", otherHuman); err != nil {
		return err
	}
	return s.baselines(ctx)
}

func (s *story) deployNewVersion(ctx context.Context) error {
	s.heading("CI deploys a new version: authorized")
	s.say("Only what CI changes becomes the new baseline. The variable that %s adds now and\nthe port that %s added are not in CI's manifest: they stay drift, with their names.", otherHuman, human)
	if err := s.asHuman(ctx, otherHuman, "set", "env", "deployment/web", "-c", "app", "DEBUG=1"); err != nil {
		return err
	}
	if err := s.awaitFinding(ctx, "web", "[name=DEBUG]", otherHuman); err != nil {
		return err
	}
	if err := s.release(ctx, "2.0"); err != nil {
		return err
	}
	if err := s.await(ctx, "cart", "in sync", inSync); err != nil {
		return err
	}
	if err := s.await(ctx, "web", "the new version authorized, the variable still drift", func(b *v1alpha1.Baseline) bool {
		variable, image := false, false
		for _, f := range b.Status.Findings {
			variable = variable || strings.Contains(f.Path, "[name=DEBUG]")
			image = image || strings.HasSuffix(f.Path, "/image")
		}
		return variable && !image && b.Spec.Authorized.Number > 1
	}); err != nil {
		return err
	}
	return s.run(ctx, s.admin, "kubectl", "plumbline", "blame", "deployment/web", "-n", shopNamespace)
}

func (s *story) changeInTheDark(ctx context.Context) error {
	s.heading("A change while the webhook is scaled to 0 and Redis is gone")
	s.say("The writer's name is stamped inside the API server and stored with the\nobject, so nothing of ours needs to run when the change happens. (Who scaled or\ndeleted is known from the webhook's record alone; without it the change is found\nand its writer is unknown.)")
	for _, deployment := range []string{"plumbline-webhook", "plumbline-redis"} {
		if err := s.run(ctx, s.admin, "kubectl", "scale", "deployment/"+deployment, "-n", systemNamespace, "--replicas=0"); err != nil {
			return err
		}
		if _, err := s.admin.Kubectl(ctx, "wait", "--for=delete", "pod", "-n", systemNamespace,
			"-l", "app.kubernetes.io/component="+strings.TrimPrefix(deployment, "plumbline-"), "--timeout=60s"); err != nil {
			return err
		}
	}
	if err := s.asHuman(ctx, otherHuman, "set", "env", "deployment/cart", "-c", "app", "PRICE_FACTOR=0.5"); err != nil {
		return err
	}
	if err := s.awaitFinding(ctx, "cart", "[name=PRICE_FACTOR]", otherHuman); err != nil {
		return err
	}
	for deployment, replicas := range map[string]string{"plumbline-redis": "1", "plumbline-webhook": "2"} {
		if _, err := s.admin.Kubectl(ctx, "scale", "deployment/"+deployment, "-n", systemNamespace, "--replicas="+replicas); err != nil {
			return err
		}
		if _, err := s.admin.Kubectl(ctx, "rollout", "status", "deployment/"+deployment, "-n", systemNamespace, "--timeout=90s"); err != nil {
			return err
		}
	}
	s.say("Both are back.")
	return nil
}

func (s *story) look(ctx context.Context) error {
	s.heading("What there is to look at")
	if err := s.baselines(ctx); err != nil {
		return err
	}
	if err := s.run(ctx, s.admin, "kubectl", "plumbline", "blame", "deployment/cart", "-n", shopNamespace); err != nil {
		return err
	}
	// diff exits with 1 when there is a difference, as kubectl diff does.
	err := s.run(ctx, s.admin, "kubectl", "plumbline", "diff", "deployment/cart", "-n", shopNamespace)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		return fmt.Errorf("kubectl plumbline diff of a drifted object: want exit code 1, got: %w", err)
	}
	return nil
}

func (s *story) release(ctx context.Context, version string) error {
	return s.runAs(ctx, s.ci, "kubectl apply -f shop.yaml   # version "+version+", by CI",
		[]string{"kubectl", "apply", "-n", shopNamespace, "-f", "-"}, harness.WithStdin(releaseManifest(s.image, version)))
}

func (s *story) asHuman(ctx context.Context, user string, args ...string) error {
	full := append(append([]string{"kubectl"}, args...), "-n", shopNamespace, "--as", user)
	return s.run(ctx, s.admin, full...)
}

func (s *story) baselines(ctx context.Context) error {
	return s.run(ctx, s.admin, "kubectl", "get", "baselines", "-n", shopNamespace)
}

func baselineOf(deployment string) string { return "deployments.apps." + deployment }

func inSync(b *v1alpha1.Baseline) bool { return b.Status.State == v1alpha1.StateInSync }

// awaitFinding waits until a finding on the path names the user, and shows it.
func (s *story) awaitFinding(ctx context.Context, deployment, path, user string) error {
	var found v1alpha1.Finding
	began := time.Now()
	err := s.await(ctx, deployment, "a finding at "+path+" by "+user, func(b *v1alpha1.Baseline) bool {
		for _, f := range b.Status.Findings {
			if strings.Contains(f.Path, path) && f.Actor.User == user {
				found = f
				return true
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	s.say("=> drift, seen after %.1f s: %s %s, by %s (%s, known from %s)", time.Since(began).Seconds(), found.Path, strings.ToLower(string(found.Operation)), found.Actor.User, strings.ToLower(string(found.Actor.Class)), found.Actor.Source)
	return nil
}

func (s *story) await(ctx context.Context, deployment, what string, holds func(*v1alpha1.Baseline) bool) error {
	return s.awaitBaseline(ctx, baselineOf(deployment), what, holds)
}

func (s *story) awaitBaseline(ctx context.Context, name, what string, holds func(*v1alpha1.Baseline) bool) error {
	return harness.Eventually(ctx, fmt.Sprintf("baseline %s: %s", name, what), patience, func(ctx context.Context) (bool, string) {
		var b v1alpha1.Baseline
		if err := s.admin.Read(ctx, &b, shopNamespace, name); err != nil {
			return false, err.Error()
		}
		return holds(&b), fmt.Sprintf("state %s, findings %+v, masks %+v", b.Status.State, b.Status.Findings, b.Status.Masks)
	})
}
