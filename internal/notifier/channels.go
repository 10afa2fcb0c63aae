// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Wants says whether a policy asks for an event to be told.
func Wants(n *v1alpha1.RemediationNotifications, e *notify.Event) bool {
	switch e.Type {
	case notify.PlanCreated:
		return wantsCreated(n.OnPlanCreated, e.Waiting)
	case notify.PlanStarted:
		return n.OnStarted == v1alpha1.Enabled
	case notify.PlanCompleted:
		return n.OnCompleted == v1alpha1.Enabled
	case notify.PlanFailed:
		return n.OnFailed == v1alpha1.Enabled
	case notify.PlanEscalated:
		return n.OnEscalated == v1alpha1.Enabled
	case notify.PlanIneffective:
		return n.OnIneffective != v1alpha1.Disabled // a policy of an earlier release says nothing
	case notify.RunStarted, notify.StageAdvanced, notify.StageFailed, notify.RunPromoted, notify.RunRolledBack, notify.RunOverdue, notify.RunWaiting,
		notify.DriftDetected, notify.DriftResolved:
		return false // a policy says nothing about releases and guards
	}
	return false
}

// wantsCreated says whether a new plan is told; waiting says that it waits for a person. A
// policy that says nothing tells of a plan that would otherwise stand there unseen.
func wantsCreated(n v1alpha1.PlanCreatedNotification, waiting bool) bool {
	switch n {
	case v1alpha1.PlanCreatedEnabled:
		return true
	case v1alpha1.PlanCreatedDisabled:
		return false
	case v1alpha1.PlanCreatedIfWaiting:
		return waiting
	}
	return waiting
}

// Channels are those of a policy, as the notifier knows them: named
// "<policy>/<channel>", so that no two policies share one.
func Channels(policy *v1alpha1.RemediationPolicy) []notify.Channel {
	return channelsOf(policy.Name, "", policy.Spec.Notifications.Channels)
}

// channelsOf are the channels of an object in a namespace; of a cluster-scoped one if the
// namespace is empty.
func channelsOf(source, namespace string, channels []v1alpha1.NotificationChannel) (out []notify.Channel) {
	for i := range channels {
		out = append(out, channelOf(source, namespace, &channels[i]))
	}
	return out
}

// channelOf is one channel; of a type that is not known nothing is set, which
// validation refuses.
func channelOf(source, namespace string, c *v1alpha1.NotificationChannel) notify.Channel {
	reference := func(r *v1alpha1.SecretKeyReference) notify.SecretRef {
		return notify.SecretRef{Name: r.Name, Key: r.Key, ForNamespace: namespace}
	}
	out := notify.Channel{Name: source + "/" + c.Name, MinimumSeverity: c.MinimumSeverity}
	to := reference(&c.Destination)
	switch c.Type {
	case v1alpha1.ChannelSlack:
		out.Slack = &notify.SlackChannel{URL: to, Channel: c.Channel}
	case v1alpha1.ChannelEmail:
		out.Email = &notify.EmailChannel{Endpoint: to, To: c.Recipients}
	case v1alpha1.ChannelWebhook:
		out.Webhook = &notify.WebhookChannel{URL: to}
		if c.SigningKey != nil {
			out.Webhook.SigningKey = reference(c.SigningKey)
		}
	case v1alpha1.ChannelCloudEvents:
		out.CloudEvents = &notify.CloudEventsChannel{URL: to, Source: c.Source}
		if c.Token != nil {
			token := reference(c.Token)
			out.CloudEvents.Token = &token
		}
	}
	return out
}
