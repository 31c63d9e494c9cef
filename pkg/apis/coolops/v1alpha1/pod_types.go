// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Keys that only the operator, kubectl or Kubernetes itself may set. The rules
// of the schema below have the same patterns.
const (
	// ReservedServiceKey matches the keys that spec.service.annotations can't have.
	ReservedServiceKey = `^(coolops[.]cn/.*|kubectl[.]kubernetes[.]io/last-applied-configuration)$`

	// ReservedPodKey matches the keys that spec.podLabels and spec.podAnnotations
	// can't have: those that the operator or a workload's controller knows its
	// pods by, those that would loosen what Pod Security restricts, and those that
	// make a pod a static one of a node.
	ReservedPodKey = `^(coolops[.]cn/.*|app[.]kubernetes[.]io/(name|instance|managed-by|component)|(controller-revision|pod-template)-hash|` +
		`(apps|batch|statefulset|container[.]apparmor[.]security[.]beta|(container[.])?seccomp[.]security[.]alpha)[.]kubernetes[.]io/.*|` +
		`kubernetes[.]io/config[.].*)$`
)

// AnnotationValue is the value of an annotation, of at most 2048 characters.
//
// +kubebuilder:validation:MaxLength=2048
type AnnotationValue string

// ServiceType says from where a Service can be reached.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

const (
	// ServiceTypeClusterIP is reached from within the cluster.
	ServiceTypeClusterIP ServiceType = "ClusterIP"

	// ServiceTypeNodePort is also reached at a port of every node.
	ServiceTypeNodePort ServiceType = "NodePort"

	// ServiceTypeLoadBalancer is also reached at an address that the cluster's
	// provider gives it.
	ServiceTypeLoadBalancer ServiceType = "LoadBalancer"
)

// ServiceSpec is about the Service that applications connect to.
type ServiceSpec struct {
	// type is ClusterIP, NodePort or LoadBalancer. The last two bring clients from
	// outside of the cluster, whom networkPolicy.from still has to admit.
	// Default: ClusterIP.
	// +optional
	Type ServiceType `json:"type,omitempty"`

	// annotations are what others read on the Service, such as the provider of a
	// load balancer: at most 16, of at most 2048 characters each. One that is
	// taken out here is taken off the Service; what others put there stays.
	// Default: none.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))`,message=`must be annotations: a key is a name of at most 63 characters, with a domain before it or not: write for example example.com/team`
	// +kubebuilder:validation:XValidation:rule=`!self.exists(key, key.matches('^(coolops[.]cn/.*|kubectl[.]kubernetes[.]io/last-applied-configuration)$'))`,messageExpression=`"can't have the key '" + self.filter(key, key.matches('^(coolops[.]cn/.*|kubectl[.]kubernetes[.]io/last-applied-configuration)$'))[0] + "', which the operator or kubectl sets; any other is allowed: take it out"`
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// TolerationOperator says how a toleration compares with a taint.
//
// +kubebuilder:validation:Enum=Exists;Equal
type TolerationOperator string

const (
	// TolerationOperatorExists tolerates a taint whatever its value.
	TolerationOperatorExists TolerationOperator = "Exists"

	// TolerationOperatorEqual tolerates a taint of the same value.
	TolerationOperatorEqual TolerationOperator = "Equal"
)

// TaintEffect is what a taint does to pods that don't tolerate it.
//
// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
type TaintEffect string

const (
	// TaintEffectNoSchedule keeps new pods off the node.
	TaintEffectNoSchedule TaintEffect = "NoSchedule"

	// TaintEffectPreferNoSchedule keeps new pods off the node while there is another.
	TaintEffectPreferNoSchedule TaintEffect = "PreferNoSchedule"

	// TaintEffectNoExecute also evicts pods that run on the node.
	TaintEffectNoExecute TaintEffect = "NoExecute"
)

// Toleration lets members run on nodes with a taint.
//
// +kubebuilder:validation:XValidation:rule=`has(self.key) || self.?operator.orValue('Equal') == 'Exists'`,message=`must name the taint: set key, or operator Exists without a key, which tolerates every taint`
// +kubebuilder:validation:XValidation:rule=`self.?operator.orValue('Equal') == 'Equal' || !has(self.value) || self.value.size() == 0`,fieldPath=`.value`,message=`can't be set beside the operator Exists, which tolerates any value: take it out, or set operator Equal`
// +kubebuilder:validation:XValidation:rule=`!has(self.tolerationSeconds) || has(self.effect) && self.effect == 'NoExecute'`,fieldPath=`.tolerationSeconds`,message=`can't be set beside another effect than NoExecute: take it out, or set effect NoExecute`
type Toleration struct {
	// key is the taint's key. Default: none, which tolerates every taint, and
	// needs the operator Exists.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')`,message=`must be the key of a taint, a name of at most 63 characters, with a domain before it or not: write for example example.com/databases`
	Key string `json:"key,omitempty"`

	// operator is Equal, which compares the value, or Exists, which tolerates any.
	// Default: Equal.
	// +optional
	Operator TolerationOperator `json:"operator,omitempty"`

	// value is the taint's value, for the operator Equal. Default: the empty one.
	// +optional
	// +kubebuilder:validation:XValidation:rule=`self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')`,message=`must be the value of a taint: letters, digits, "-", "_" and ".", beginning and ending with a letter or digit`
	Value LabelValue `json:"value,omitempty"`

	// effect is the taint's effect: NoSchedule, PreferNoSchedule or NoExecute.
	// Default: any.
	// +optional
	Effect TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is how long, in seconds, a member stays on a node that was
	// given a taint of the effect NoExecute; 0 is not at all. Default: for ever.
	// +optional
	// +kubebuilder:validation:Minimum=0
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// UnsatisfiableAction is what becomes of a member that can't be spread.
//
// +kubebuilder:validation:Enum=DoNotSchedule;ScheduleAnyway
type UnsatisfiableAction string

const (
	// DoNotSchedule lets the member wait.
	DoNotSchedule UnsatisfiableAction = "DoNotSchedule"

	// ScheduleAnyway lets it run where it fits best.
	ScheduleAnyway UnsatisfiableAction = "ScheduleAnyway"
)

// TopologySpreadConstraint spreads the members over parts of the cluster.
type TopologySpreadConstraint struct {
	// maxSkew is the number of members by which two parts may differ, at least 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	MaxSkew int32 `json:"maxSkew"`

	// topologyKey is the label of nodes whose values are the parts, such as
	// topology.kubernetes.io/zone.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule=`self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')`,message=`must be the key of a label that nodes have: write for example topology.kubernetes.io/zone`
	TopologyKey string `json:"topologyKey"`

	// whenUnsatisfiable is DoNotSchedule, where a member waits for a part that
	// fits, or ScheduleAnyway, where it runs all the same.
	// +required
	WhenUnsatisfiable UnsatisfiableAction `json:"whenUnsatisfiable"`
}

// ImagePullSecret names a Secret of the database's own namespace.
type ImagePullSecret struct {
	// name is the Secret's name.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message=`must be the name of a Secret of this namespace, lower-case letters, digits, "-" and ".": write one that "kubectl get secrets" lists`
	Name string `json:"name"`
}
