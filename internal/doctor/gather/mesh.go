// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plumbline-dev/plumbline/internal/doctor"
	"github.com/plumbline-dev/plumbline/internal/portforward"
	"github.com/plumbline-dev/plumbline/internal/proxieshttp"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
)

// injection is the ConfigMap and the key with what the webhook injects by.
const (
	injection    = "plumbline-inject"
	injectionKey = "inject.yaml"
)

// proxiesTimeout bounds what one replica tells of all its proxies.
const proxiesTimeout = 30 * time.Second

// mesh reads what proxies depend on, where there are any.
func (r *reader) mesh(ctx context.Context) {
	s := r.snapshot
	if s.HasMesh() != doctor.ReadValue {
		return
	}
	s.Mesh = doctor.Mesh{
		Problems: r.meshProblems(ctx), Authorities: r.authorities(ctx), Mode: r.injectionMode(ctx),
		Injected: s.Mesh.Injected, Doubled: s.Mesh.Doubled,
	}
	s.Mesh.Connected, s.Mesh.Unserved = r.connected(ctx)
}

// meshProblems are what the discovery server says of the managed Services.
func (r *reader) meshProblems(ctx context.Context) doctor.Read[[]ir.Problem] {
	var in ir.Inputs
	list := &corev1.ServiceList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			in.Services = append(in.Services, list.Items[i].DeepCopy())
		}
	}, client.MatchingLabels{ir.Managed: "true"})
	return result(ir.Build(in).Problems, "list services", err)
}

func (r *reader) authorities(ctx context.Context) doctor.Read[map[string]bool] {
	has := map[string]bool{}
	list := &corev1.ConfigMapList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			if list.Items[i].Data[inject.CAKey] != "" {
				has[list.Items[i].Namespace] = true
			}
		}
	}, client.MatchingFields{"metadata.name": inject.CAConfigMap})
	return result(has, "list configmaps named "+inject.CAConfigMap, err)
}

func (r *reader) injectionMode(ctx context.Context) doctor.Read[inject.Mode] {
	namespace := r.snapshot.Namespace
	found := &corev1.ConfigMap{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: injection}, found)
	var config struct {
		Mode inject.Mode `json:"mode"`
	}
	if err == nil {
		err = yaml.Unmarshal([]byte(found.Data[injectionKey]), &config)
	}
	return result(config.Mode, "get configmaps in namespace "+namespace, err)
}

// injected are the pods with proxies that run, and those that have a proxy of Istio as well:
// these may not come to run.
func (r *reader) injected(ctx context.Context) (run, doubled doctor.Read[[]string]) {
	var running, both []string
	list := &corev1.PodList{}
	err := r.pages(ctx, list, func() {
		for i := range list.Items {
			p := &list.Items[i]
			if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				running = append(running, p.Namespace+"/"+p.Name)
			}
			if inject.Injected(p) && inject.HasIstio(p) {
				both = append(both, p.Namespace+"/"+p.Name)
			}
		}
	}, client.HasLabels{inject.LabelProxy})
	return result(running, "list pods", err), result(both, "list pods", err)
}

// connected asks each replica of the discovery server for its proxies, and for what these
// cannot have. If one does not answer, it is not known which proxies are not connected.
func (r *reader) connected(ctx context.Context) (doctor.Read[map[string]bool], doctor.Read[map[string][]string]) {
	namespace, known, unserved := r.snapshot.Namespace, map[string]bool{}, map[string][]string{}
	list := &corev1.PodList{}
	if err := r.client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{labelName: plumbline, labelComponent: "xds"}); err != nil {
		return result(known, "list pods in namespace "+namespace, err), result(unserved, "list pods in namespace "+namespace, err)
	}
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		proxies, err := r.proxiesOf(ctx, p)
		if err != nil {
			right := portforward.Right(namespace)
			return result(known, right, err), result(unserved, right, err)
		}
		for _, proxy := range proxies.Proxies {
			name := proxy.Namespace + "/" + proxy.Pod
			known[name] = true
			if len(proxy.Unserved) > 0 {
				unserved[name] = proxy.Unserved
			}
		}
	}
	return doctor.Got(known), doctor.Got(unserved)
}

// proxiesOf asks a replica, which the API server leads to.
func (r *reader) proxiesOf(ctx context.Context, p *corev1.Pod) (proxieshttp.List, error) {
	ctx, cancel := context.WithTimeout(ctx, proxiesTimeout)
	defer cancel()
	replica := portforward.NewClient(r.config, portforward.Target{Namespace: p.Namespace, Pod: p.Name, Port: proxieshttp.Port})
	list, err := proxieshttp.Client{HTTP: replica}.List(ctx, proxieshttp.Filter{})
	if err != nil {
		return list, fmt.Errorf("asking %s: %w", p.Name, err)
	}
	return list, nil
}
