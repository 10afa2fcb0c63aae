// SPDX-License-Identifier: Apache-2.0

//go:build integration

package peers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/test/harness/apiserver"
)

const (
	maxWriters = 8
	// perWriter is how many objects each writer has, and writes in turn.
	perWriter = 4
)

// kind is one kind of objects that are written.
type kind struct {
	name       string
	prefix     string // of the objects' names
	variables  int    // of the container: the size of the object
	replicaSet bool
}

var (
	small   = kind{name: "Deployment, small", prefix: "small", variables: 1}
	medium  = kind{name: "Deployment, 20 KiB", prefix: "medium", variables: 115}
	large   = kind{name: "Deployment, 200 KiB", prefix: "large", variables: 1150}
	replica = kind{name: "ReplicaSet of a Deployment", prefix: "replica", variables: 1, replicaSet: true}
)

func (k kind) objectName(writer, n int) string { return fmt.Sprintf("%s-%d-%d", k.prefix, writer, n) }

// template is a pod of one container with so many variables.
func (k kind) template(name string) corev1.PodTemplateSpec {
	var env []corev1.EnvVar
	for n := range k.variables {
		env = append(env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%04d", n), Value: strings.Repeat("v", 40+n%60)})
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "shop/web:0", Env: env}}},
	}
}

// scene holds the clients of the writers, and the objects that they write.
type scene struct {
	clients map[string]*kubernetes.Clientset // by user
	version atomic.Int64                     // of the next image
	mu      sync.Mutex
	sets    map[types.NamespacedName]*appsv1.ReplicaSet // as last seen
}

func newScene(b *testing.B, w *world) *scene {
	b.Helper()
	s := &scene{clients: map[string]*kubernetes.Clientset{}, sets: map[types.NamespacedName]*appsv1.ReplicaSet{}}
	for _, user := range []string{trusted, untrusted, controller} {
		config := apiserver.Impersonate(w.config, user, writersGroup)
		config.WarningHandler, config.WarningHandlerWithContext = nil, countWarnings{}
		if user == controller {
			config.ContentType = "application/vnd.kubernetes.protobuf" // as kube-controller-manager
		}
		var err error
		if s.clients[user], err = kubernetes.NewForConfig(config); err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// countWarnings adds the warnings of a response to the counter of the request's context.
type countWarnings struct{}

type counterKey struct{}

var _ rest.WarningHandlerWithContext = countWarnings{}

func (countWarnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if counter, is := ctx.Value(counterKey{}).(*warnings); is {
		counter.lines++
		counter.last = text
	}
}

// warnings are those of one write.
type warnings struct {
	lines int
	last  string
}

// create makes the objects of a kind in a namespace.
func (s *scene) create(b *testing.B, k kind, namespace string) {
	b.Helper()
	for writer := range maxWriters {
		for n := range perWriter {
			s.createObject(b, k, namespace, k.objectName(writer, n))
		}
	}
}

func (s *scene) createObject(b *testing.B, k kind, namespace, name string) {
	b.Helper()
	one := int32(1)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
	meta := metav1.ObjectMeta{Name: name, Labels: selector.MatchLabels}
	deployment, err := s.clients[trusted].AppsV1().Deployments(namespace).Create(b.Context(), &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &one, Selector: selector, Template: k.template(name)},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	if !k.replicaSet {
		return
	}
	meta.Name += "-5d4f8"
	meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	set, err := s.clients[controller].AppsV1().ReplicaSets(namespace).Create(b.Context(), &appsv1.ReplicaSet{
		ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Replicas: &one, Selector: selector, Template: k.template(name)},
	}, metav1.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	s.keep(namespace, name, set)
}

func (s *scene) keep(namespace, name string, set *appsv1.ReplicaSet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets[types.NamespacedName{Namespace: namespace, Name: name}] = set
}

func (s *scene) kept(namespace, name string) *appsv1.ReplicaSet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sets[types.NamespacedName{Namespace: namespace, Name: name}].DeepCopy()
}

// write makes one write and measures it.
func (s *scene) write(ctx context.Context, c cell, namespace, name string) (time.Duration, warnings, error) {
	var said warnings
	ctx = context.WithValue(ctx, counterKey{}, &said)
	version := s.version.Add(1)
	if c.kind.replicaSet {
		took, err := s.scale(ctx, namespace, name, version)
		return took, said, err
	}
	patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"shop/web:%d"}]}}}}`, version)
	request := s.clients[c.user].AppsV1().RESTClient().Patch(types.StrategicMergePatchType).
		Namespace(namespace).Resource("deployments").Name(name).Body(patch)
	begin := time.Now()
	err := request.Do(ctx).Error() // The answer is read, and not decoded.
	return time.Since(begin), said, err
}

// scale writes a ReplicaSet as the deployment controller does in a rollout.
func (s *scene) scale(ctx context.Context, namespace, name string, version int64) (time.Duration, error) {
	set := s.kept(namespace, name)
	replicas := int32(1 + version%10)
	if *set.Spec.Replicas == replicas {
		replicas++
	}
	set.Spec.Replicas = &replicas
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, "deployment.kubernetes.io/desired-replicas", "10")
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, "deployment.kubernetes.io/max-replicas", "13")
	begin := time.Now()
	answer, err := s.clients[controller].AppsV1().ReplicaSets(namespace).Update(ctx, set, metav1.UpdateOptions{})
	took := time.Since(begin)
	if err == nil {
		s.keep(namespace, name, answer)
	}
	return took, err
}
