// SPDX-License-Identifier: Apache-2.0

package notify

import "github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"

// ChannelType is a kind of channel; metrics are told apart by it.
type ChannelType string

// The kinds of channels.
const (
	ChannelSlack       ChannelType = "Slack"
	ChannelEmail       ChannelType = "Email"
	ChannelWebhook     ChannelType = "Webhook"
	ChannelCloudEvents ChannelType = "CloudEvents"
)

// SecretRef names a value that is resolved at each attempt, so that a change
// needs no restart. The value itself is in no configuration.
type SecretRef struct {
	// Name of the Secret and Key in its data.
	Name, Key string
	// ForNamespace is the namespace of the object that names the Secret, and that the Secret has to
	// list; empty for a cluster-scoped object.
	ForNamespace string
}

// Channel is where people, or machines, are told. Exactly one of the kinds is
// set.
type Channel struct {
	// Name is unique among all channels, such as "<policy>/<channel>"; it is how
	// events are addressed, and what logs and errors say. 1 to 400 visible
	// characters.
	Name string
	// MinimumSeverity of the events that the channel is told of; see [Route]. Empty: of
	// all events.
	MinimumSeverity v1alpha1.SeverityLevel
	Slack           *SlackChannel
	Email           *EmailChannel
	Webhook         *WebhookChannel
	CloudEvents     *CloudEventsChannel
}

// Type is the kind that is set, "" when there is none.
func (c Channel) Type() ChannelType {
	switch {
	case c.Slack != nil:
		return ChannelSlack
	case c.Email != nil:
		return ChannelEmail
	case c.Webhook != nil:
		return ChannelWebhook
	case c.CloudEvents != nil:
		return ChannelCloudEvents
	default:
		return ""
	}
}

// SlackChannel is an incoming webhook of Slack, Mattermost, or whatever takes the
// same body.
type SlackChannel struct {
	// URL is secret as a whole: who has it may write to the channel.
	URL SecretRef
	// Channel overrides the webhook's own, such as "#ops-alerts", where the
	// receiver allows that. Optional.
	Channel string
}

// EmailChannel sends through a mail server.
type EmailChannel struct {
	// Endpoint resolves to what ParseMailEndpoint reads.
	Endpoint SecretRef
	// To are the recipients, at most 32.
	To []string
}

// WebhookChannel is a receiver of Standard Webhooks.
type WebhookChannel struct {
	URL SecretRef
	// SigningKey resolves to one key "whsec_…", or several separated by spaces.
	SigningKey SecretRef
}

// CloudEventsChannel is a receiver of CloudEvents over HTTP, structured mode.
type CloudEventsChannel struct {
	URL SecretRef
	// Token is sent as "Authorization: Bearer". Optional.
	Token *SecretRef
	// Source is the producer, a URI-reference; DefaultSource when empty. Name the
	// cluster in it where several send to one receiver.
	Source string
}
