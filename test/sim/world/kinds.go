// SPDX-License-Identifier: Apache-2.0

package world

import (
	"strings"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/specguard"
	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
	"github.com/plumbline-dev/plumbline/test/sim/apiserver"
)

// kind of the targets of a world.
type kind struct {
	gvk      canon.GVK
	resource string
	// path of all objects of the kind.
	path string
	// Specs: a good one, one that drifted, one of somebody else, and one that was
	// authorized after the good one.
	good, bad, foreign, later func() apiserver.Object
}

// The kinds. A PUT makes a Service that is not there, and a Service has no
// generation and no controller that makes it ready.
var (
	deployments = kind{
		canon.GVK{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", "/apis/apps/v1/namespaces/" + namespace + "/deployments",
		func() apiserver.Object { return deploymentSpec(imageDesired, 2) },
		func() apiserver.Object { return deploymentSpec(imageDrifted, 2) },
		func() apiserver.Object { return deploymentSpec(imageElsewise, 2) },
		func() apiserver.Object { return deploymentSpec(imageNewer, 2) },
	}
	services = kind{
		canon.GVK{Version: "v1", Kind: "Service"}, "services", "/api/v1/namespaces/" + namespace + "/services",
		func() apiserver.Object { return serviceSpec("web") },
		func() apiserver.Object { return serviceSpec("miner") },
		func() apiserver.Object { return serviceSpec("other") },
		func() apiserver.Object { return serviceSpec("newer") },
	}
)

// kindOf finds a kind; nil for what is never a target.
func kindOf(group, resource string) *kind {
	for _, k := range []*kind{&deployments, &services} {
		if k.gvk.Group == group && k.resource == resource {
			return k
		}
	}
	return nil
}

// ofTarget says that a write is one of a kind of which there are targets.
func ofTarget(c apiserver.Commit) bool { return kindOf(c.Resource.Group, c.Resource.Resource) != nil }

// onTarget says that a request is about a target.
func onTarget(r apiserver.Request) bool {
	return strings.HasPrefix(r.Path, deployments.path) || strings.HasPrefix(r.Path, services.path)
}

// shape of targets: what they should be, what they are, and what else they may become.
type shape struct {
	desired, drifted, other apiserver.Object
	// newer is what was authorized after what is desired; nil unless it is a rollback.
	newer apiserver.Object
	gone  bool
	// inSync says that it is as it should be at first.
	inSync bool
}

// shape of the targets of an action.
func (k *kind) shape(action v1alpha1.RemediationAction) shape {
	s := shape{desired: k.good(), drifted: k.bad(), other: k.foreign()}
	switch action {
	case v1alpha1.ActionScale:
		s.drifted = deploymentSpec(imageDesired, 5)
	case v1alpha1.ActionRestart:
		s.drifted = k.good()
	case v1alpha1.ActionRollback:
		s.newer = k.later()
	case v1alpha1.ActionReconcile, v1alpha1.ActionNotifyOnly, v1alpha1.ActionQuarantine:
	}
	return s
}

// deploymentSpec is a spec with an image and replicas.
func deploymentSpec(image string, replicas int64) apiserver.Object {
	labels := map[string]any{"app": "web"}
	return apiserver.Object{
		"replicas": replicas, "progressDeadlineSeconds": int64(600),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}},
		},
	}
}

// serviceSpec is a spec that leads to some pods.
func serviceSpec(to string) apiserver.Object {
	return apiserver.Object{
		"type": "ClusterIP", "selector": map[string]any{"app": to},
		"ports": []any{map[string]any{"name": "http", "port": int64(80), "targetPort": int64(8080), "protocol": "TCP"}},
	}
}

// object of the kind.
func (k *kind) object(name string, spec apiserver.Object) apiserver.Object {
	return apiserver.Object{
		"kind": k.gvk.Kind, "apiVersion": k.apiVersion(), "spec": spec,
		"metadata": map[string]any{"name": name, "namespace": namespace, "labels": map[string]any{"app": "web"}},
	}
}

func (k *kind) apiVersion() string {
	if k.gvk.Group == "" {
		return k.gvk.Version
	}
	return k.gvk.Group + "/" + k.gvk.Version
}

// rules are what the guard of the world says of its targets.
func (k *kind) rules(now time.Time) specguard.Rules {
	g, errs := specguard.Compile(specguard.GuardRef{Name: guardName}, guard().Spec.GuardSpec, nil, now)
	if len(errs) > 0 {
		panic(errs.ToAggregate())
	}
	set := specguard.NewGuardSet([]*specguard.Guard{g}, specguard.ExcludedNamespaces(namespaceOfPlumbline), specguard.System{Executor: Executor})
	return set.Rules(specguard.Query{Namespace: namespace, GVK: k.gvk, Labels: []map[string]string{{"app": "web"}}, Now: now})
}
