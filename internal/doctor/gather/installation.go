// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/internal/doctor"
)

const (
	labelName      = "app.kubernetes.io/name"
	labelComponent = "app.kubernetes.io/component"
	labelVersion   = "app.kubernetes.io/version"
	plumbline      = "plumbline"
	webhook        = "webhook"

	// metricsTimeout bounds one replica's answer through the proxy.
	metricsTimeout = 5 * time.Second
	// maxScraped bounds how many replicas are asked.
	maxScraped = 20
)

// findNamespace looks for the installation: by the labels of its Deployments, or
// by the Service that the webhooks call.
func (r *reader) findNamespace(ctx context.Context) {
	s := r.snapshot
	if s.Namespace != "" {
		return
	}
	list := &appsv1.DeploymentList{}
	err := r.client.List(ctx, list, client.MatchingLabels{labelName: plumbline, labelComponent: webhook})
	if err == nil && len(list.Items) > 0 {
		s.Namespace = list.Items[0].Namespace
		return
	}
	for _, w := range s.Webhooks.Value {
		if w.Configuration == doctor.ConfigurationName && w.Client.Service != nil {
			s.Namespace = w.Client.Service.Namespace
			return
		}
	}
	s.Workloads = result([]doctor.Workload{}, "list deployments in all namespaces", err)
}

func (r *reader) installation(ctx context.Context) {
	s := r.snapshot
	s.Workloads = r.workloads(ctx)
	s.Pods = r.pods(ctx)
	s.Service = r.service(ctx)
	s.Certificate = r.certificate(ctx, doctor.SecretName)
	lease := &coordinationv1.Lease{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: doctor.AssessorName}, lease)
	s.AssessorLease = result(leaseOf(lease), "get leases in namespace "+s.Namespace, err)
	r.executor(ctx)
	r.mesh(ctx)
	r.delivery(ctx)
	r.api(ctx)
}

func leaseOf(l *coordinationv1.Lease) doctor.Lease {
	out := doctor.Lease{
		Holder:   ptr.Deref(l.Spec.HolderIdentity, ""),
		Duration: time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
	if l.Spec.RenewTime != nil {
		out.Renewed = l.Spec.RenewTime.Time
	}
	return out
}

func (r *reader) ours() []client.ListOption {
	return []client.ListOption{client.InNamespace(r.snapshot.Namespace), client.MatchingLabels{labelName: plumbline}}
}

func (r *reader) workloads(ctx context.Context) doctor.Read[[]doctor.Workload] {
	var out []doctor.Workload
	list := &appsv1.DeploymentList{}
	err := r.client.List(ctx, list, r.ours()...)
	for i := range list.Items {
		d := &list.Items[i]
		w := doctor.Workload{
			Name: d.Name, Component: d.Labels[labelComponent], Version: d.Labels[labelVersion],
			Labels: d.Labels, Annotations: d.Annotations,
			Desired: ptr.Deref(d.Spec.Replicas, 1), Ready: d.Status.ReadyReplicas,
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			w.Args = append(w.Args, c.Args...)
		}
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.EmptyDir != nil || v.Ephemeral != nil {
				w.Fleeting = append(w.Fleeting, v.Name)
			}
		}
		out = append(out, w)
	}
	return result(out, "list deployments in namespace "+r.snapshot.Namespace, err)
}

func (r *reader) pods(ctx context.Context) doctor.Read[[]doctor.Pod] {
	var out []doctor.Pod
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, r.ours()...)
	scraped := 0
	records, served := r.snapshot.ServesRecords()
	for i := range list.Items {
		p := &list.Items[i]
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		pod := doctor.Pod{Name: p.Name, Component: p.Labels[labelComponent], Version: p.Labels[labelVersion], Ready: isReady(p)}
		if pod.Component == webhook && scraped < maxScraped {
			pod.Metrics, pod.Build = r.metrics(ctx, p.Name, portNamed(p, "metrics"))
			scraped++
		}
		if pod.Component == doctor.APIComponent && pod.Ready {
			pod.Skew = r.readSkew(ctx, p.Name, portNamed(p, "metrics"))
		}
		if pod.Component == records && served && pod.Ready {
			pod.Records = r.records(ctx, p.Name, portNamed(p, "health"))
		}
		out = append(out, pod)
	}
	return result(out, "list pods in namespace "+r.snapshot.Namespace, err)
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func portNamed(p *corev1.Pod, name string) int32 {
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return 0
}

// metrics of one replica and the version of its binary, through the API server.
func (r *reader) metrics(ctx context.Context, pod string, port int32) (doctor.Read[doctor.Metrics], string) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%d/proxy/metrics", r.snapshot.Namespace, pod, port)
	body, err := r.raw.Get().AbsPath(path).Do(ctx).Raw()
	text := string(body)
	return result(doctor.ParseMetrics(text), "get pods/proxy in namespace "+r.snapshot.Namespace, err), doctor.BuildVersion(text)
}

// rescrape asks the webhook's replicas again.
func (r *reader) rescrape(ctx context.Context) doctor.Read[[]doctor.Pod] {
	s := r.snapshot
	if s.Namespace == "" || doctor.Reviews(s.Pods).State != doctor.ReadValue {
		return s.Pods
	}
	return r.pods(ctx)
}

func (r *reader) service(ctx context.Context) doctor.Read[doctor.ServiceStatus] {
	namespace := r.snapshot.Namespace
	service := &corev1.Service{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: doctor.WebhookName}, service); err != nil {
		return result(doctor.ServiceStatus{}, "get services in namespace "+namespace, err)
	}
	var out doctor.ServiceStatus
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		out.Addresses = doctor.Gone[int]() // it has no endpoints of its own
		return doctor.Got(out)
	}
	out.Addresses = r.addresses(ctx, doctor.WebhookName)
	return doctor.Got(out)
}

// addresses counts the ready endpoints of a Service.
func (r *reader) addresses(ctx context.Context, service string) doctor.Read[int] {
	namespace := r.snapshot.Namespace
	slices := &discoveryv1.EndpointSliceList{}
	err := r.client.List(ctx, slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service})
	ready := 0
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) {
				ready++
			}
		}
	}
	return result(ready, "list endpointslices in namespace "+namespace, err)
}

func (r *reader) certificate(ctx context.Context, name string) doctor.Read[doctor.Certificate] {
	namespace := r.snapshot.Namespace
	secret := &corev1.Secret{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if err == nil && len(secret.Data[corev1.TLSCertKey]) == 0 {
		return doctor.Gone[doctor.Certificate]()
	}
	var certificate doctor.Certificate
	if err == nil {
		certificate, err = doctor.ParseCertificate(secret.Data[corev1.TLSCertKey])
	}
	return result(certificate, "get secrets in namespace "+namespace, err)
}
