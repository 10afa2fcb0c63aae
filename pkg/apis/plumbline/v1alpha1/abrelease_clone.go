// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ContainerName names a container of a pod.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
type ContainerName string

// ImageReference is the image of a container, as pods name it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
// +kubebuilder:validation:Pattern=`^[!-~]+$`
type ImageReference string

// CloneVariable is an environment variable of a container.
type CloneVariable struct {
	// name is the name of the variable.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[!-<>-~]+$`
	Name string `json:"name,omitempty"`
	// value is the value of the variable. All readers of the release can read it: keep secrets
	// in Secrets.
	// +required
	// +kubebuilder:validation:MaxLength=4096
	Value *string `json:"value,omitempty"`
}

// CloneContainer is a container that differs from that of the stable variation.
//
// +kubebuilder:validation:XValidation:rule="has(self.image) || has(self.env)",message="a container of a clone differs in image, env, or both: give one"
type CloneContainer struct {
	// name is the name of the container.
	// +required
	Name ContainerName `json:"name,omitempty"`
	// image is the image of the container. If unset, that of the stable variation.
	// +optional
	Image ImageReference `json:"image,omitempty"`
	// env are variables that are added, or that replace those of the same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Env []CloneVariable `json:"env,omitempty"`
}

// VariationClone says how a clone differs from the Deployment of the stable variation.
//
// +kubebuilder:validation:XValidation:rule="has(self.containers) != (has(self.image) || has(self.env))",message="a clone differs in its only container (image, env) or in containers by name: give one of them"
type VariationClone struct {
	// image is the image of the only container. With more than one container, use containers.
	// +optional
	Image ImageReference `json:"image,omitempty"`
	// env are variables of the only container that are added, or that replace those of the
	// same name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Env []CloneVariable `json:"env,omitempty"`
	// containers are the containers that differ.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Containers []CloneContainer `json:"containers,omitempty"`
	// minReplicas is the smallest number of pods of the clone while a run is on.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas *int32 `json:"minReplicas,omitempty"`
	// podLabels are labels that the pods of the clone have in place of those of the stable
	// variation. They must take the pods out of the selectors of the Service and of the stable
	// variation's Deployment. So at least one key of each selector has another value.
	// +required
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) > 0 && size(k) <= 317)",message="a label key has 1 to 317 characters"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('plumbline.dev/'))",message="labels of plumbline.dev are set by the executor alone: use another key"
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`
}

// RolloutWork is a ReleaseWork of the run, with its result.
type RolloutWork struct {
	// number is the number of the work, from 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	Number int64 `json:"number,omitempty"`
	// run is the run that the work belongs to.
	// +required
	// +kubebuilder:validation:Minimum=1
	Run int64 `json:"run,omitempty"`
	// verb is the verb of the work.
	// +required
	Verb ReleaseWorkVerb `json:"verb,omitempty"`
	// variation is the variation of the clone or group, or the one that the autoscaler scales.
	// +required
	Variation VariationName `json:"variation,omitempty"`
	// replicas are the replicas that the work asks for; absent with UpdateBaseline.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Replicas *int32 `json:"replicas,omitempty"`
	// expectedHash is the expected hash of the stable variation's pod template.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=96
	ExpectedHash string `json:"expectedHash,omitempty"`
	// phase is the phase of the work; absent until the work is made.
	// +optional
	Phase ReleaseWorkPhase `json:"phase,omitempty"`
	// message is the message of the work, for people.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// FreshControl is the name of the variation that is a clone of the active one, with which a canary is compared. No
// release names it among its own variations.
const FreshControl VariationName = "fresh-control"

// HasFreshControl says whether runs compare their canary with a clone of the active variation.
func (s *ABReleaseSpec) HasFreshControl() bool {
	return s.Rollout != nil && s.Rollout.Analysis != nil && s.Rollout.Analysis.Control == ControlFresh
}

// CloneName returns the name of the Deployment that is the clone of a variation. It joins the
// names of the release and of the variation by a hyphen.
func CloneName(release string, variation VariationName) string {
	return release + "-" + string(variation)
}
