// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
	"github.com/plumbline-dev/plumbline/pkg/remediate/notify"
)

// Wants says whether a policy asks for events of this type to be told.
func Wants(n *v1alpha1.RemediationNotifications, t notify.EventType) bool {
	switch t {
	case notify.PlanCreated:
		return n.OnPlanCreated == v1alpha1.Enabled
	case notify.PlanStarted:
		return n.OnStarted == v1alpha1.Enabled
	case notify.PlanCompleted:
		return n.OnCompleted == v1alpha1.Enabled
	case notify.PlanFailed:
		return n.OnFailed == v1alpha1.Enabled
	case notify.PlanEscalated:
		return n.OnEscalated == v1alpha1.Enabled
	}
	return false
}

// Channels are those of a policy, as the notifier knows them: named
// "<policy>/<channel>", so that no two policies share one.
func Channels(policy *v1alpha1.RemediationPolicy) []notify.Channel {
	var out []notify.Channel
	for i := range policy.Spec.Notifications.Channels {
		out = append(out, channelOf(policy.Name, &policy.Spec.Notifications.Channels[i]))
	}
	return out
}

// channelOf is one channel; of a type that is not known nothing is set, which
// validation refuses.
func channelOf(policy string, c *v1alpha1.NotificationChannel) notify.Channel {
	out := notify.Channel{Name: policy + "/" + c.Name}
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

func reference(r *v1alpha1.SecretKeyReference) notify.SecretRef {
	return notify.SecretRef{Name: r.Name, Key: r.Key}
}
