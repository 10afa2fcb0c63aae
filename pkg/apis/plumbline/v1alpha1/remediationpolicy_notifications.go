// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// SecretKeyReference names a key of a Secret in Plumbline's own namespace.
type SecretKeyReference struct {
	// name is the name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`
	// key is the key within the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key,omitempty"`
}

// ChannelType says how a notification travels.
// +kubebuilder:validation:Enum=Slack;Email;Webhook;CloudEvents
type ChannelType string

// The channel types.
const (
	// ChannelSlack: an incoming webhook of Slack, or of a service with the same interface.
	ChannelSlack ChannelType = "Slack"
	// ChannelEmail: mail over SMTP.
	ChannelEmail ChannelType = "Email"
	// ChannelWebhook: a request signed as Standard Webhooks say.
	ChannelWebhook ChannelType = "Webhook"
	// ChannelCloudEvents: a CloudEvent over HTTP.
	ChannelCloudEvents ChannelType = "CloudEvents"
)

// NotificationChannel is where people are told.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'Email' ? has(self.recipients) && size(self.recipients) > 0 : !has(self.recipients)",message="recipients are for type Email, and needed there",fieldPath=".recipients"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Webhook') == has(self.signingKey)",message="signingKey is for type Webhook, and needed there",fieldPath=".signingKey"
// +kubebuilder:validation:XValidation:rule="self.type == 'CloudEvents' || !has(self.token)",message="token is for type CloudEvents",fieldPath=".token"
// +kubebuilder:validation:XValidation:rule="self.type == 'CloudEvents' || !has(self.source)",message="source is for type CloudEvents",fieldPath=".source"
// +kubebuilder:validation:XValidation:rule="self.type == 'Slack' || !has(self.channel)",message="channel is for type Slack",fieldPath=".channel"
type NotificationChannel struct {
	// name is the name of the channel, unique in its object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`
	// type is the type of the channel.
	// +required
	Type ChannelType `json:"type,omitempty"`
	// minimumSeverity is the minimum severity of the events that this channel is told of. If
	// unset, Info. An event has the worst severity of its targets. An event without a severity
	// goes to all channels, and so does a failed or escalated plan that is below the minimum of
	// every channel.
	// +optional
	MinimumSeverity SeverityLevel `json:"minimumSeverity,omitempty"`
	// destination names the Secret key that holds the URL. Slack, Webhook and CloudEvents take
	// an https:// URL; Email takes smtp:// or smtps:// with user, password and ?from=address.
	// All parts are percent-encoded as URLs are.
	// +required
	Destination SecretKeyReference `json:"destination,omitzero"`
	// signingKey names the Secret key that signs requests of type Webhook.
	// +optional
	SigningKey *SecretKeyReference `json:"signingKey,omitempty"`
	// token names the Secret key with the value that requests of type CloudEvents carry, as
	// Authorization: Bearer.
	// +optional
	Token *SecretKeyReference `json:"token,omitempty"`
	// source is the source of CloudEvents, a URI-reference. If unset, urn:plumbline:remediation.
	// Name the cluster in it where several send to one receiver.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[-A-Za-z0-9._~:/?#@!$&'()*+,;=%]+$`
	Source string `json:"source,omitempty"`
	// channel is the channel at Slack, e.g. #ops-alerts. If unset, the one of the webhook.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Channel string `json:"channel,omitempty"`
	// recipients are the recipients of mail.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=254
	// +kubebuilder:validation:items:Pattern=`^[^@\s<>,;]+@[^@\s<>,;]+$`
	Recipients []string `json:"recipients,omitempty"`
}

// PlanCreatedNotification says of which new plans people are told.
// +kubebuilder:validation:Enum=Enabled;IfWaiting;Disabled
type PlanCreatedNotification string

// Of which plans people are told.
const (
	// PlanCreatedEnabled: of every plan.
	PlanCreatedEnabled PlanCreatedNotification = "Enabled"
	// PlanCreatedIfWaiting: of a plan that waits for a person to execute it.
	PlanCreatedIfWaiting PlanCreatedNotification = "IfWaiting"
	// PlanCreatedDisabled: of no plan.
	PlanCreatedDisabled PlanCreatedNotification = "Disabled"
)

// RemediationNotifications name the channels for each kind of event.
type RemediationNotifications struct {
	// onPlanCreated tells that a plan was made: every plan, or a plan that waits for a
	// person to execute it.
	// +optional
	// +default="IfWaiting"
	OnPlanCreated PlanCreatedNotification `json:"onPlanCreated,omitempty"`
	// onStarted tells that one began.
	// +optional
	// +default="Disabled"
	OnStarted Toggle `json:"onStarted,omitempty"`
	// onCompleted tells that one ended well.
	// +optional
	// +default="Enabled"
	OnCompleted Toggle `json:"onCompleted,omitempty"`
	// onFailed tells that one failed, in whole or in part.
	// +optional
	// +default="Enabled"
	OnFailed Toggle `json:"onFailed,omitempty"`
	// onEscalated is about drift that is left to people, such as drift that is too old, and
	// about drift in the first stage of spec.escalation.
	// +optional
	// +default="Enabled"
	OnEscalated Toggle `json:"onEscalated,omitempty"`
	// onIneffective tells of a remediation that did not help, or that another writer undid.
	// +optional
	// +default="Enabled"
	OnIneffective Toggle `json:"onIneffective,omitempty"`
	// channels are the channels that get a notification.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Channels []NotificationChannel `json:"channels,omitempty"`
}
