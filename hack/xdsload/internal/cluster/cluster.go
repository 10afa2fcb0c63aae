// SPDX-License-Identifier: Apache-2.0

// Package cluster is a [world.World] as a real API server has it: Services, EndpointSlices, releases
// whose splits are in force, and the pods of proxies. Nothing runs in it but the API server.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/plumbline-dev/plumbline/hack/xdsload/internal/world"
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
	"github.com/plumbline-dev/plumbline/test/harness/proxypod"
)

const (
	// Namespace is Plumbline's own.
	Namespace = "plumbline"
	// Lease is that of its leader, which another process has.
	Lease = "plumbline-xds"
	// apps is the namespace of all proxies, front their account.
	apps  = "apps"
	front = "front"
	// writers are requests to the API server at a time.
	writers = 16
)

// Cluster is a running API server with a world.
type Cluster struct {
	shape      world.Shape
	server     *envtest.Environment
	admin      client.WithWatch
	kubeconfig string
	pods       []*corev1.Pod
	slices     []*discoveryv1.EndpointSlice
	releases   map[world.Target]*v1alpha1.ABRelease
}

// Start an API server, whose files are in a directory, and fill it. The caller stops it, also when
// there is an error.
func Start(ctx context.Context, shape world.Shape, directory string) (*Cluster, error) {
	c := &Cluster{
		shape: shape, kubeconfig: filepath.Join(directory, "xds.kubeconfig"),
		pods: make([]*corev1.Pod, shape.Proxies), slices: make([]*discoveryv1.EndpointSlice, shape.Services), releases: map[world.Target]*v1alpha1.ABRelease{},
	}
	var err error
	if c.server, err = apiserver.Start(apiserver.WithKinds, func(e *envtest.Environment) {
		e.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.96.0.0/12").Disable("max-requests-inflight")
	}); err != nil {
		return c, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return c, err
	}
	if c.admin, err = client.NewWithWatch(c.server.Config, client.Options{Scheme: scheme}); err != nil {
		return c, fmt.Errorf("making a client: %w", err)
	}
	if err := apiserver.Enrol(c.server, c.kubeconfig, "xds", "system:masters"); err != nil {
		return c, err
	}
	return c, c.fill(ctx)
}

// Kubeconfig is the file by which the discovery server reaches the API server.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// Stop the API server.
func (c *Cluster) Stop() error {
	if c.server == nil {
		return nil
	}
	return c.server.Stop()
}

func (c *Cluster) fill(ctx context.Context) error {
	namespaces := []string{Namespace, apps}
	for i := 0; i < c.shape.Services; i += c.shape.Dependencies {
		namespace, _ := c.shape.Name(i)
		namespaces = append(namespaces, namespace)
	}
	if err := each(ctx, len(namespaces), func(ctx context.Context, i int) error {
		return c.create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaces[i]}})
	}); err != nil {
		return err
	}
	err := errors.Join(c.create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: apps, Name: front}}), c.lead(ctx))
	if err != nil {
		return err
	}
	if err := each(ctx, c.shape.Services, c.service); err != nil {
		return err
	}
	for _, t := range []world.Target{world.One, world.Hundred, world.All} {
		if err := c.divide(ctx, t); err != nil {
			return err
		}
	}
	return each(ctx, c.shape.Proxies, c.pod)
}

// lead has the lease, so that no replica decides about releases: the benchmark does.
func (c *Cluster) lead(ctx context.Context) error {
	now := metav1.NowMicro()
	return c.create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Lease}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("benchmark"), LeaseDurationSeconds: new(int32(86_400)), AcquireTime: &now, RenewTime: &now,
	}})
}

func (c *Cluster) create(ctx context.Context, object client.Object) error {
	if err := c.admin.Create(ctx, object); err != nil {
		return fmt.Errorf("creating %T %s: %w", object, object.GetName(), err)
	}
	return nil
}

// each calls a function for so many indexes, some at a time.
func each(ctx context.Context, n int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

func (c *Cluster) service(ctx context.Context, i int) error {
	namespace, name := c.shape.Name(i)
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{ir.Managed: "true"}, Annotations: map[string]string{ir.ExportToAnnotation: "*"},
	}}
	s.Spec.ClusterIP = c.shape.Address(i).String()
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: world.Port}}
	if err := c.create(ctx, s); err != nil {
		return err
	}
	e := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name},
	}, AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}}
	for k := range c.shape.Endpoints {
		e.Endpoints = append(e.Endpoints, endpointAt(netip.AddrFrom4([4]byte{11 + byte(i>>16), byte(i >> 8), byte(i), byte(k)})))
	}
	c.slices[i] = e
	return c.create(ctx, e)
}

func endpointAt(address netip.Addr) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}
}

// pod of a proxy, which names the services that its group sees.
func (c *Cluster) pod(ctx context.Context, i int) error {
	var upstreams []string
	for _, s := range c.shape.Seen(c.shape.Group(i)) {
		namespace, name := c.shape.Name(s)
		upstreams = append(upstreams, namespace+"/"+name)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: apps, Name: fmt.Sprint("proxy-", i), Annotations: map[string]string{"plumbline.dev/upstreams": strings.Join(upstreams, ",")},
	}, Spec: corev1.PodSpec{ServiceAccountName: front, Containers: []corev1.Container{{Name: "app", Image: "app"}}}}
	proxypod.Inject(p, inject.Redirect)
	c.pods[i] = p
	return c.create(ctx, p)
}
