// SPDX-License-Identifier: Apache-2.0

//go:build integration

package execute

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/ir"
	"github.com/plumbline-dev/plumbline/test/harness/backend"
	"github.com/plumbline-dev/plumbline/test/harness/remediation"
	"github.com/plumbline-dev/plumbline/test/harness/sendonce"
)

// fleet does what the controllers and the kubelets do in a world: the pods of each Deployment have applications of
// their own, and those of web are the endpoints of the Service front. A rollout is the worst that there is: all pods
// end at once, with their connections, before the first new one begins.
type fleet struct {
	*world
	live client.WithWatch
	// pods are those of each Deployment, and rolled the generation that they are of.
	pods   map[string][]*application
	rolled map[string]int64
	// held keeps a rollout of web from making pods until it is closed; nil for none.
	held atomic.Pointer[hold]
}

// hold is a rollout of web that makes no pods: ended says that all pods of before have ended.
type hold struct {
	ended atomic.Bool
	over  chan struct{}
}

// application of one pod.
type application struct {
	pod    *corev1.Pod
	slice  *discoveryv1.EndpointSlice
	server *http.Server
}

// fleet begins to follow the Deployments of the world, until the test ends.
func (w *world) fleet() *fleet {
	w.t.Helper()
	w.Must(admin.Create(w.t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Name, Name: "front", Labels: map[string]string{ir.Managed: "true"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}},
		},
	}))
	live, err := client.NewWithWatch(config, client.Options{Scheme: admin.Scheme()})
	w.Must(err)
	f := &fleet{world: w, live: live, pods: map[string][]*application{}, rolled: map[string]int64{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	watch, err := live.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(w.Name))
	w.Must(err)
	done := make(chan struct{})
	w.t.Cleanup(func() {
		cancel()
		watch.Stop()
		<-done
		f.endApplications()
	})
	go func() {
		defer close(done)
		for event := range watch.ResultChan() {
			if err := f.follow(ctx, event); err != nil && ctx.Err() == nil {
				w.t.Errorf("the pods of a Deployment: %v", err)
			}
		}
	}()
	return f
}

func (f *fleet) follow(ctx context.Context, event apiwatch.Event) error {
	d, is := event.Object.(*appsv1.Deployment)
	switch {
	case !is:
		return nil
	case event.Type == apiwatch.Deleted:
		return f.end(ctx, d.Name)
	case d.Status.ObservedGeneration == d.Generation || d.DeletionTimestamp != nil:
		return nil
	case f.rolled[d.Name] != d.Generation:
		if err := f.roll(ctx, d); err != nil {
			return err
		}
	}
	d.Status = remediation.RolledOut(d, true)
	if err := f.live.Status().Update(ctx, d); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // after a conflict there is another event
		return fmt.Errorf("writing the status of %s: %w", d.Name, err)
	}
	return nil
}

// roll replaces the pods of a Deployment.
func (f *fleet) roll(ctx context.Context, d *appsv1.Deployment) error {
	if err := f.end(ctx, d.Name); err != nil {
		return err
	}
	if held := f.held.Load(); held != nil && d.Name == "web" {
		held.ended.Store(true)
		select {
		case <-held.over:
		case <-ctx.Done():
			return nil
		}
	}
	for i := range int(*d.Spec.Replicas) {
		a, err := f.begin(ctx, d, i)
		if err != nil {
			return err
		}
		f.pods[d.Name] = append(f.pods[d.Name], a)
	}
	f.rolled[d.Name] = d.Generation
	return nil
}

// begin starts an application that answers with its image and its Deployment, and then makes its pod.
func (f *fleet) begin(ctx context.Context, d *appsv1.Deployment, number int) (*application, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(backend.Own(f.t), "0")) //nolint:noctx // closed when it ends
	if err != nil {
		return nil, err
	}
	at := listener.Addr().(*net.TCPAddr) //nolint:forcetypeassert // of a TCP listener
	answer := d.Spec.Template.Spec.Containers[0].Image + " " + d.Name
	a := &application{server: &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, answer)
	})}}
	go func() { _ = a.server.Serve(listener) }() // ends with the application
	hash := "h" + strconv.FormatInt(d.Generation, 10)
	a.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Name, Name: fmt.Sprintf("%s-%s-%d", d.Name, hash, number), Labels: map[string]string{"pod-template-hash": hash},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: d.Name + "-" + hash, UID: "replicas", Controller: new(true)}},
		},
		Spec: *d.Spec.Template.Spec.DeepCopy(),
	}
	maps.Copy(a.pod.Labels, d.Spec.Template.Labels)
	a.pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(at.Port)}} //nolint:gosec // a port
	if err := f.live.Create(ctx, a.pod); err != nil {
		return nil, fmt.Errorf("making a pod of %s: %w", d.Name, err)
	}
	a.pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: at.IP.String(), PodIPs: []corev1.PodIP{{IP: at.IP.String()}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	if err := f.live.Status().Update(ctx, a.pod); err != nil {
		return nil, fmt.Errorf("running a pod of %s: %w", d.Name, err)
	}
	if d.Name != "web" { // the Service does not select it
		return a, nil
	}
	a.slice = &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: f.Name, Name: "front-" + a.pod.Name, Labels: map[string]string{discoveryv1.LabelServiceName: "front"}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(at.Port))}}, //nolint:gosec // a port
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{at.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: f.Name, Name: a.pod.Name},
		}},
	}
	if err := f.live.Create(ctx, a.slice); err != nil {
		return nil, fmt.Errorf("making an endpoint of %s: %w", d.Name, err)
	}
	return a, nil
}

// end ends the pods of a Deployment.
func (f *fleet) end(ctx context.Context, name string) error {
	var failed error
	for _, a := range f.pods[name] {
		failed = errors.Join(failed, a.server.Close(), f.live.Delete(ctx, a.pod, client.GracePeriodSeconds(0)))
		if a.slice != nil {
			failed = errors.Join(failed, f.live.Delete(ctx, a.slice))
		}
	}
	f.pods[name] = nil
	return failed
}

// endApplications ends all applications, and leaves their pods to the namespace.
func (f *fleet) endApplications() {
	for _, pods := range f.pods {
		for _, a := range pods {
			_ = a.server.Close() // the test is over
		}
	}
}

// hold keeps the next rollout of web from making pods.
func (f *fleet) hold() *hold {
	h := &hold{over: make(chan struct{})}
	f.held.Store(h)
	return h
}

// load is an open loop: a request begins every ten milliseconds, whether or not the one before has its answer. No
// request is sent twice.
type load struct {
	w *world
	// end begins no more requests, and waits until each has its answer.
	end func()

	mu      sync.Mutex
	answers map[string]int
	failed  []string
}

// startLoad asks at an address, until the test ends.
func (w *world) startLoad(address string) *load {
	w.t.Helper()
	l := &load{w: w, answers: map[string]int{}}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	var asking sync.WaitGroup
	asking.Go(func() {
		ticks := time.NewTicker(10 * time.Millisecond)
		defer ticks.Stop()
		for ctx.Err() == nil {
			asking.Go(func() {
				l.note(ask(context.WithoutCancel(ctx), &http.Client{Transport: transport, Timeout: patience}, address))
			})
			<-ticks.C
		}
	})
	l.end = func() { stop(); asking.Wait(); transport.CloseIdleConnections() }
	w.t.Cleanup(l.end)
	return l
}

// ask returns the answer of a request; the error is that of an answer other than 200 as well.
func ask(ctx context.Context, c *http.Client, address string) (string, error) {
	request, err := sendonce.NewRequest(ctx, http.MethodPost, "http://"+address+"/", "")
	if err != nil {
		return "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %q", response.Status, body)
	}
	return string(body), err
}

func (l *load) note(answer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, time.Now().UTC().Format("15:04:05.000 ")+err.Error())
		return
	}
	l.answers[answer]++
}

// answered waits for so many more answers of this text.
func (l *load) answered(more int, answer string) {
	l.w.t.Helper()
	l.mu.Lock()
	from := l.answers[answer]
	l.mu.Unlock()
	l.w.Eventually(fmt.Sprintf("%d more answers %q", more, answer), func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := l.answers[answer] - from; n < more {
			return fmt.Errorf("there are %d; all are %v, and %d have failed", n, l.answers, len(l.failed))
		}
		return nil
	})
}

// noneFailed ends the load, and fails the test if a request has failed.
func (l *load) noneFailed() {
	l.w.t.Helper()
	l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.failed) > 0 {
		l.w.t.Errorf("%d requests failed, the first with %q, and %v were answered", len(l.failed), l.failed[0], l.answers)
	}
	l.w.t.Logf("answers: %v", l.answers)
}
