// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plumbline-dev/plumbline/pkg/traffic/inject"
)

// scopeAnnotations say what a proxy depends on. A pod that has none has its namespace's.
var scopeAnnotations = []string{UpstreamsAnnotation, inject.AnnotationLocalPorts}

// rescoped says that a pod depends on something else than before. A scope is read when a
// stream begins, so its streams end: the next ones have what it depends on now. A split
// would wait for it until then, as for one that does not answer.
func rescoped(was, is *corev1.Pod) bool {
	for _, name := range scopeAnnotations {
		before, had := was.Annotations[name]
		after, has := is.Annotations[name]
		if had != has || before != after {
			return true
		}
	}
	return false
}

// onNamespaces ends the streams of all pods to which an annotation of their namespace
// counts that has changed.
func (s *sources) onNamespaces(ctx context.Context, ended func(uid string)) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		was, is := before.(*corev1.Namespace), after.(*corev1.Namespace) //nolint:forcetypeassert // informers keep one type
		for _, name := range scopeAnnotations {
			if was.Annotations[name] != is.Annotations[name] {
				s.rescope(ctx, is.Name, name, ended)
			}
		}
	}}
}

func (s *sources) rescope(ctx context.Context, namespace, annotation string, ended func(uid string)) {
	var pods corev1.PodList
	if err := s.cache.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{injectedField: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		s.log.Error(err, "listing the pods of a namespace whose proxies depend on something else now", "namespace", namespace)
		return
	}
	for i := range pods.Items {
		if _, own := pods.Items[i].Annotations[annotation]; !own {
			ended(string(pods.Items[i].UID))
		}
	}
}
