// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// known is a controller that is recognized by its field manager.
type known struct {
	tool    string
	account v1alpha1.ServiceAccountReference
}

func account(namespace, name string) v1alpha1.ServiceAccountReference {
	return v1alpha1.ServiceAccountReference{Namespace: namespace, Name: name}
}

var (
	argoCD = known{"Argo CD", account("argocd", "argocd-application-controller")}
	keda   = known{"KEDA", account("keda", "keda-operator")}
	// autoscalerAccount is the one that the controller manager uses for
	// HorizontalPodAutoscalers (--use-service-account-credentials).
	autoscalerAccount = account("kube-system", "horizontal-pod-autoscaler")
)

// deployers change objects because somebody authorized the change elsewhere, in
// Git as a rule. The account is the one of their usual installation; another one
// is never guessed, for whoever can make service accounts could make one of that
// name.
var deployers = map[string]known{
	"argocd-controller":             argoCD,
	"argocd-application-controller": argoCD, // the name before Argo CD set one
	"kustomize-controller":          {"Flux", account("flux-system", "kustomize-controller")},
	"helm-controller":               {"Flux", account("flux-system", "helm-controller")},
}

// kedaManagers write /scale when a ScaledObject goes to zero or comes back.
var kedaManagers = map[string]bool{"keda": true, "keda-operator": true}

const (
	// managerHPA is the manager of the autoscaler's writes through /scale: the
	// program that it is a part of.
	managerHPA = "kube-controller-manager"
	// managerHelm says nothing of who runs Helm.
	managerHelm = "helm"
	// managerBefore stands for all fields set before managedFields were kept.
	managerBefore = "before-first-apply"
)

// interactive are the field managers of programs that people write with. They
// are of no use to tell a person from a script.
var interactive = map[string]bool{
	"kubectl": true, "oc": true, "k9s": true, "lens": true, "openlens": true, "freelens": true, "headlamp": true,
	"octant": true, "dashboard": true, "kubernetes-dashboard": true, "rancher": true, "argocd-server": true,
	"mozilla": true, "node-fetch": true, "curl": true,
}

// LooksHuman tells whether a field manager is one of a program that people
// write with: kubectl with any suffix, a console, a browser.
func LooksHuman(manager string) bool {
	name := strings.ToLower(manager)
	return interactive[name] || strings.HasPrefix(name, "kubectl") || strings.HasPrefix(name, "oc-")
}

const serviceAccountPrefix = "system:serviceaccount:"

func userOf(a v1alpha1.ServiceAccountReference) string {
	return serviceAccountPrefix + a.Namespace + ":" + a.Name
}

// accountOf reads a service account's user name.
func accountOf(user string) (v1alpha1.ServiceAccountReference, bool) {
	rest, ok := strings.CutPrefix(user, serviceAccountPrefix)
	if !ok {
		return v1alpha1.ServiceAccountReference{}, false
	}
	namespace, name, ok := strings.Cut(rest, ":")
	if !ok || namespace == "" || name == "" || strings.Contains(name, ":") {
		return v1alpha1.ServiceAccountReference{}, false
	}
	return account(namespace, name), true
}
