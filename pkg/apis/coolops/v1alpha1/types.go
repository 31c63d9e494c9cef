// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Quantities below take digits, an optional fraction and one unit, and no sign
// or exponent. The usual pattern lets more in: 1e1.5, after which no Go client
// can decode the object, nor any list that it is in; and 1e-9999999, which
// takes each of them seconds to decode. The unit m is let in, because Go clients
// write 0.1Gi back as 107374182400m.

// The bounds that both the schema below and the operator rely on.
const (
	// MaxStemLength is the greatest length of spec.deploymentName, in
	// characters. A StatefulSet pod's name carries the stem, an ordinal and a
	// hash in labels of at most 63 characters; 40 leaves room for every suffix
	// that a child's name takes.
	MaxStemLength = 40

	// MinReplicas and MaxReplicas bound spec.replicas.
	MinReplicas = 1
	MaxReplicas = 10
)

// DatabaseType names a database engine.
//
// +kubebuilder:validation:Enum=mysql;mariadb;postgresql;redis;valkey
type DatabaseType string

const (
	// DatabaseTypeMySQL is MySQL, served on port 3306.
	DatabaseTypeMySQL DatabaseType = "mysql"

	// DatabaseTypeMariaDB is MariaDB, served on port 3306.
	DatabaseTypeMariaDB DatabaseType = "mariadb"

	// DatabaseTypePostgreSQL is PostgreSQL, served on port 5432.
	DatabaseTypePostgreSQL DatabaseType = "postgresql"

	// DatabaseTypeRedis is Redis, served on port 6379.
	DatabaseTypeRedis DatabaseType = "redis"

	// DatabaseTypeValkey is Valkey, served on port 6379.
	DatabaseTypeValkey DatabaseType = "valkey"
)

// DatabaseManager is one database: running, reachable by a stable name, with
// its credentials in a Secret, and truthful in its status.
//
// +genclient
// +genclient:method=GetScale,verb=get,subresource=scale,result=k8s.io/api/autoscaling/v1.Scale
// +genclient:method=UpdateScale,verb=update,subresource=scale,input=k8s.io/api/autoscaling/v1.Scale,result=k8s.io/api/autoscaling/v1.Scale
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=databasemanagers,singular=databasemanager,shortName=dm,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="TYPE",type=string,JSONPath=`.spec.dbtype`,description="Database engine."
// +kubebuilder:printcolumn:name="VERSION",type=string,JSONPath=`.status.currentVersion`,description="Engine version that the database runs."
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Members asked for."
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.availableReplicas`,description="Members that answer a query."
// +kubebuilder:printcolumn:name="PRIMARY",type=string,JSONPath=`.status.currentPrimary`,description="Pod that takes writes."
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,description="Reason of the condition Ready."
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule=`self.metadata.name.size() <= 63`,message=`metadata.name must have at most 63 characters, because it is the value of the label app.kubernetes.io/instance: choose a shorter name`
type DatabaseManager struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; metadata.name has at most 63 characters.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the database that is asked for.
	// +required
	Spec DatabaseManagerSpec `json:"spec"`

	// status is what the operator last saw of the database. It is a report:
	// nothing is decided from it, and it may be deleted at any time.
	// +optional
	Status DatabaseManagerStatus `json:"status,omitempty"`
}

// DatabaseManagerSpec is the database that is asked for. Only deploymentName
// and dbtype are required.
//
// A transition rule on an optional field isn't evaluated when the field appears
// or goes, so the presence of storage is guarded here, one level up.
//
// +kubebuilder:validation:XValidation:rule=`has(self.storage) || !has(oldSelf.storage)`,fieldPath=`.storage`,message=`can't be removed, because the data is on the volumes: set it back, or create another DatabaseManager without storage and copy the data`
// +kubebuilder:validation:XValidation:rule=`!has(self.storage) || has(oldSelf.storage)`,fieldPath=`.storage`,message=`can't be added to a database that was created without it: take it out, or create another DatabaseManager with storage and copy the data`
// +kubebuilder:validation:XValidation:rule=`has(self.storage) || (has(self.replicas) ? self.replicas > 1 : false) == (has(oldSelf.replicas) ? oldSelf.replicas > 1 : false)`,fieldPath=`.replicas`,message=`can't change between one and several in a database without storage, because its members would have to be made anew, without the data: set it back, or create another DatabaseManager and copy the data`
// +kubebuilder:validation:XValidation:rule=`!has(self.auth) || !(self.auth.secretName in [self.deploymentName + '-auth', self.deploymentName + '-admin'])`,fieldPath=`.auth.secretName`,messageExpression=`"must be a Secret of your own, and '" + self.auth.secretName + "' is one that the operator makes: choose another name, or take spec.auth out for a generated password"`
type DatabaseManagerSpec struct {
	// deploymentName is the name of the workload (a Deployment without storage,
	// a StatefulSet with) and the stem of every other child's name: the Service
	// has the same name, the Secret is <deploymentName>-auth, and so on. It is
	// unique in its namespace, a DNS label of 1 to 40 characters: lower-case
	// letters, digits and '-', beginning with a letter, and not ending in '-'.
	// It can't be changed.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.size() <= 40`,message=`must have at most 40 characters, because the name of every child begins with it: choose a shorter name`
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')`,message=`must be lower-case letters, digits and '-', beginning with a letter and not ending in '-': choose a name such as orders-db`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,messageExpression=`"can't be changed from '" + oldSelf + "', because every child carries it in its name: set it back, or create another DatabaseManager"`
	DeploymentName string `json:"deploymentName"`

	// replicas is the number of members, 1 to 10; default 1. One is the
	// primary, the others replicate from it, and one of them takes its place when
	// it fails. Without storage it can't change between one and several.
	// +optional
	// +default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Replicas *int32 `json:"replicas,omitempty"`

	// dbtype is the database engine: mysql, mariadb, postgresql, redis or valkey.
	// It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,messageExpression=`"can't be changed from '" + oldSelf + "', because no engine reads the data of another: set it back, or create another DatabaseManager and copy the data"`
	DBType DatabaseType `json:"dbtype"`

	// version is the engine's version: one to three numbers separated by dots,
	// for example "8.0"; in YAML it needs the quotes. Default: the operator's
	// default for the engine, resolved once, when the database is created. A
	// version that the operator doesn't know gives the condition Ready=False
	// with the reason InvalidSpec, and changes nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[0-9]{1,4}([.][0-9]{1,4}){0,2}$')`,message=`must be one to three numbers separated by dots: write for example "8.0", or leave the field out for the default of the engine`
	Version string `json:"version,omitempty"`

	// image overrides the container image that dbtype and version give, as a
	// reference such as registry.example/redis:8.0. It holds the same engine
	// and version, laid out as the upstream image is. At most 512 characters,
	// no white space. Default: the upstream image of the version.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[!-~]+$')`,message=`must be an image reference, not empty and without white space: write for example redis:8.0, or leave the field out for the image of the version`
	Image string `json:"image,omitempty"`

	// storage asks for a volume for each member. Default: none; the database is
	// ephemeral then, and its data goes with its pod. It can't be added or
	// removed later.
	// +optional
	Storage *StorageSpec `json:"storage,omitempty"`

	// networkPolicy says who may reach the members, besides the pods of the same
	// namespace and the operator. Default: nobody else. It counts where the
	// cluster's network enforces NetworkPolicies. It can be changed at any time.
	// +optional
	NetworkPolicy *NetworkPolicySpec `json:"networkPolicy,omitempty"`

	// auth says where the application's password comes from. Default: it is
	// generated, and stands in the Secret <deploymentName>-auth. It can be changed
	// at any time.
	// +optional
	Auth *AuthSpec `json:"auth,omitempty"`

	// config are parameters of the engine, at most 64, by their own names, such as
	// max_connections: "200". The documentation lists, for each engine, those that
	// may be set, with their defaults and whether a change restarts the members;
	// the others are the operator's own. A value is a text of at most 256
	// printable ASCII characters: numbers need quotes. Default: the operator's
	// default of each. What is taken out goes back to the default. It can be
	// changed at any time; a name or value that isn't allowed gives the condition
	// Ready=False with the reason InvalidSpec, and changes nothing.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule=`self.all(name, name.matches('^[a-z][-a-z0-9_]{0,62}$'))`,message=`must have names of parameters, lower-case letters, digits, "-" and "_": write for example max_connections: "200"`
	// +kubebuilder:validation:XValidation:rule=`self.all(name, self[name].matches('^[ -~]*$'))`,message=`must have values of printable ASCII characters, on one line: write for example max_connections: "200"`
	Config map[string]ConfigValue `json:"config,omitempty"`

	// replication says how members replicate. Default: as its fields say.
	// +optional
	Replication *ReplicationSpec `json:"replication,omitempty"`

	// suspend takes the operator's hands off the database, which keeps running:
	// nothing is created, changed, repaired or deleted until it is false again.
	// The status goes on telling how the database is. Default: false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// shutdown stops the members, and keeps what is on their volumes: there is no
	// pod until it is false again. A database without storage loses its data by it.
	// Default: false.
	// +optional
	Shutdown bool `json:"shutdown,omitempty"`

	// resources are the CPU time, memory and scratch space of each member's
	// database container. Default: none asked for and no limit. A change
	// restarts the members.
	// +optional
	Resources *ResourceRequirements `json:"resources,omitempty"`

	// service is about the Service <deploymentName>, which applications connect to.
	// Default: one that is reached from within the cluster. It can be changed at
	// any time.
	// +optional
	Service *ServiceSpec `json:"service,omitempty"`

	// nodeSelector are labels, at most 16, that a node must all have to run
	// members. Default: none, which admits every node. A change restarts the
	// members.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self[key].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))`,message=`must be labels of nodes: a key is a name of at most 63 characters, with a domain before it or not, and a value has letters, digits, "-", "_" and ".", and begins and ends with a letter or digit: write for example disk: ssd`
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// tolerations are what lets members run on nodes with taints, at most 16.
	// Default: those that the operator was started with when the database was
	// created; a list here takes their place. A change restarts the members.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// topologySpreadConstraints are how the members of this database are spread
	// over parts of the cluster, such as zones; at most 8. Default: none. A change
	// restarts the members.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule=`self.all(one, !has(one.topologyKey) || !has(one.whenUnsatisfiable) || self.exists_one(other, has(other.topologyKey) && has(other.whenUnsatisfiable) && one.topologyKey == other.topologyKey && one.whenUnsatisfiable == other.whenUnsatisfiable))`,message=`must have no two entries of the same topologyKey and whenUnsatisfiable: take one of them out`
	TopologySpreadConstraints []TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// priorityClassName is the PriorityClass of the members, in at most 253
	// characters. Default: the cluster's default class. A change restarts the
	// members.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message=`must be the name of a PriorityClass, lower-case letters, digits, "-" and ".": write one that "kubectl get priorityclasses" lists, or leave the field out for the default class of the cluster`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// imagePullSecrets are Secrets of this namespace, of the type
	// kubernetes.io/dockerconfigjson, that open the image's registry; at most 8.
	// Default: those that the operator was started with when the database was
	// created; a list here takes their place. A change restarts the members.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule=`self.all(one, !has(one.name) || self.exists_one(other, has(other.name) && one.name == other.name))`,message=`must have no two entries of the same name: take one of them out`
	ImagePullSecrets []ImagePullSecret `json:"imagePullSecrets,omitempty"`

	// podLabels are labels, at most 16, that members get besides the operator's
	// own. Nothing of the operator selects by them. Default: none. A change
	// restarts the members.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self[key].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))`,message=`must be labels: a key is a name of at most 63 characters, with a domain before it or not, and a value has letters, digits, "-", "_" and ".", and begins and ends with a letter or digit: write for example example.com/team: shop`
	// +kubebuilder:validation:XValidation:rule=`!self.exists(key, key.matches('^(coolops[.]cn/.*|app[.]kubernetes[.]io/(name|instance|managed-by|component)|(controller-revision|pod-template)-hash|(apps|batch|statefulset|container[.]apparmor[.]security[.]beta|(container[.])?seccomp[.]security[.]alpha)[.]kubernetes[.]io/.*|kubernetes[.]io/config[.].*)$'))`,messageExpression=`"can't have the key '" + self.filter(key, key.matches('^(coolops[.]cn/.*|app[.]kubernetes[.]io/(name|instance|managed-by|component)|(controller-revision|pod-template)-hash|(apps|batch|statefulset|container[.]apparmor[.]security[.]beta|(container[.])?seccomp[.]security[.]alpha)[.]kubernetes[.]io/.*|kubernetes[.]io/config[.].*)$'))[0] + "', which belongs to the operator or to Kubernetes; others are allowed, such as example.com/team: take it out"`
	PodLabels map[string]LabelValue `json:"podLabels,omitempty"`

	// podAnnotations are annotations, at most 16 of at most 2048 characters each,
	// that members get. Default: none. A change restarts the members.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(key, key.size() <= 317 && key.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))`,message=`must be annotations: a key is a name of at most 63 characters, with a domain before it or not: write for example example.com/team`
	// +kubebuilder:validation:XValidation:rule=`!self.exists(key, key.matches('^(coolops[.]cn/.*|app[.]kubernetes[.]io/(name|instance|managed-by|component)|(controller-revision|pod-template)-hash|(apps|batch|statefulset|container[.]apparmor[.]security[.]beta|(container[.])?seccomp[.]security[.]alpha)[.]kubernetes[.]io/.*|kubernetes[.]io/config[.].*)$'))`,messageExpression=`"can't have the key '" + self.filter(key, key.matches('^(coolops[.]cn/.*|app[.]kubernetes[.]io/(name|instance|managed-by|component)|(controller-revision|pod-template)-hash|(apps|batch|statefulset|container[.]apparmor[.]security[.]beta|(container[.])?seccomp[.]security[.]alpha)[.]kubernetes[.]io/.*|kubernetes[.]io/config[.].*)$'))[0] + "', which belongs to the operator or to Kubernetes; others are allowed, such as example.com/team: take it out"`
	PodAnnotations map[string]AnnotationValue `json:"podAnnotations,omitempty"`
}

// StorageSpec is the volume of each member.
//
// +kubebuilder:validation:XValidation:rule=`has(self.storageClassName) || !has(oldSelf.storageClassName)`,fieldPath=`.storageClassName`,message=`can't be removed, because a volume stays in its class: set it back, or create another DatabaseManager and copy the data`
// +kubebuilder:validation:XValidation:rule=`!has(self.storageClassName) || has(oldSelf.storageClassName)`,fieldPath=`.storageClassName`,message=`can't be added after creation, because a volume stays in its class: take it out, or create another DatabaseManager and copy the data`
type StorageSpec struct {
	// size is the capacity of each member's volume, in bytes, as a quantity:
	// digits and an optional unit, such as 512Mi or 10Gi. At least 64Mi. It can
	// grow, where the StorageClass allows that, and never shrinks.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') && quantity(string(self)).compareTo(quantity('64Mi')) >= 0`,message=`must be a quantity of at least 64Mi, as digits and a unit: write for example 1Gi`
	// +kubebuilder:validation:XValidation:rule=`string(self) == string(oldSelf) || !string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0`,messageExpression=`"can't shrink from " + string(oldSelf) + ", because no volume does: set it back, or create another DatabaseManager with a smaller size and copy the data"`
	Size resource.Quantity `json:"size"`

	// storageClassName is the StorageClass of the volumes. Default: the
	// cluster's default class when the volume is created. It can't be changed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message=`must be the name of a StorageClass, lower-case letters, digits, "-" and ".": write one that "kubectl get storageclass" lists, or leave the field out for the default class of the cluster`
	// +kubebuilder:validation:XValidation:rule=`self == oldSelf`,messageExpression=`"can't be changed from '" + oldSelf + "', because a volume stays in its class: set it back, or create another DatabaseManager and copy the data"`
	StorageClassName *string `json:"storageClassName,omitempty"`

	// retention says what becomes of the volumes when they are no longer used.
	// Default: they are kept. It can be changed at any time.
	// +optional
	Retention *StorageRetention `json:"retention,omitempty"`
}

// ReplicationMode says when a client hears that its write is done.
//
// +kubebuilder:validation:Enum=async;sync
type ReplicationMode string

const (
	// ReplicationModeAsync is once the primary has it.
	ReplicationModeAsync ReplicationMode = "async"

	// ReplicationModeSync is once enough replicas have it, too, for it to survive a
	// failover.
	ReplicationModeSync ReplicationMode = "sync"
)

// ReplicationSpec says how members replicate.
type ReplicationSpec struct {
	// mode is sync, if a write is acknowledged once enough replicas have it for it
	// to survive a failover, or async, if the primary alone decides. Default: sync
	// from three members on, async for two. What each promises differs by engine;
	// Redis and Valkey bound what can be lost. It can be changed at any time.
	// +optional
	Mode ReplicationMode `json:"mode,omitempty"`
}

// AuthSpec says where the application's password comes from.
type AuthSpec struct {
	// secretName is the name of a Secret of your own in the same namespace, with
	// the password under the key password, of 1 to 200 bytes. It has to carry the
	// label coolops.cn/credentials: "true", because the operator sees no other. A
	// change of the password becomes the database's within a minute, without a
	// restart. The Secret <deploymentName>-auth has what an application connects
	// with, as ever. At most 253 characters.
	// +required
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule=`self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')`,message=`must be the name of a Secret, lower-case letters, digits, "-" and ".": write one that "kubectl get secret" lists, or take spec.auth out for a generated password`
	SecretName string `json:"secretName"`
}

// ConfigValue is the value of a parameter of an engine, of at most 256 characters.
//
// +kubebuilder:validation:MaxLength=256
type ConfigValue string

// NetworkPolicySpec says who may reach the members.
type NetworkPolicySpec struct {
	// from are the clients, at most 16, that may reach the engine's port besides
	// the pods of the same namespace and the operator. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	From []NetworkPolicyPeer `json:"from,omitempty"`
}

// NetworkPolicyPeer selects clients, as a peer of a Kubernetes NetworkPolicy
// does: pods by their labels, in this namespace or in others by theirs, or
// addresses.
//
// +kubebuilder:validation:XValidation:rule=`has(self.podSelector) || has(self.namespaceSelector) || has(self.ipBlock)`,message=`must select something: set podSelector, namespaceSelector or ipBlock`
// +kubebuilder:validation:XValidation:rule=`!has(self.ipBlock) || !has(self.podSelector) && !has(self.namespaceSelector)`,message=`can't select pods and addresses at once: make two entries of it`
type NetworkPolicyPeer struct {
	// podSelector selects pods by labels: of the namespaces that namespaceSelector
	// selects, or, without it, of this namespace. One without labels selects all.
	// Default: all pods of the namespaces that namespaceSelector selects.
	// +optional
	PodSelector *LabelsSelector `json:"podSelector,omitempty"`

	// namespaceSelector selects namespaces by labels, and all pods in them where
	// there is no podSelector. One without labels selects all. A namespace's name
	// is its label kubernetes.io/metadata.name. Default: this namespace.
	// +optional
	NamespaceSelector *LabelsSelector `json:"namespaceSelector,omitempty"`

	// ipBlock selects addresses, in place of pods: those outside of the cluster
	// as the network shows them. It excludes podSelector and namespaceSelector.
	// Default: none.
	// +optional
	IPBlock *IPBlock `json:"ipBlock,omitempty"`
}

// LabelsSelector selects objects by labels.
type LabelsSelector struct {
	// matchLabels are the labels, at most 16, that an object must all have.
	// Default: none, which selects every object.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule=`self.all(key, key.size() <= 317 && self[key].matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$'))`,message=`must be labels: a value has letters, digits, "-", "_" and ".", and begins and ends with a letter or digit`
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`
}

// LabelValue is the value of a label, of at most 63 characters.
//
// +kubebuilder:validation:MaxLength=63
type LabelValue string

// IPBlock is a range of addresses.
type IPBlock struct {
	// cidr is the range, such as 192.0.2.0/24 or 2001:db8::/64, in at most 64
	// characters.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`isCIDR(self)`,message=`must be a range of addresses: write for example 192.0.2.0/24`
	CIDR string `json:"cidr"`

	// except are ranges within cidr, at most 16, that aren't selected, such as
	// 192.0.2.128/25. Default: none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule=`self.all(range, isCIDR(range))`,message=`must be ranges of addresses: write for example 192.0.2.128/25`
	Except []string `json:"except,omitempty"`
}

// RetentionPolicy says what becomes of a volume that is no longer used.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RetentionPolicy string

const (
	// RetentionPolicyRetain keeps the volume.
	RetentionPolicyRetain RetentionPolicy = "Retain"

	// RetentionPolicyDelete deletes the volume, with its data.
	RetentionPolicyDelete RetentionPolicy = "Delete"
)

// StorageRetention says what becomes of the volumes.
type StorageRetention struct {
	// whenDeleted is what becomes of the volumes, of the Secrets that open them
	// and of the topology when the DatabaseManager is deleted: Retain keeps them,
	// and the next DatabaseManager of the same deploymentName and dbtype has the
	// data again; Delete deletes them. Default: Retain. Deleting the namespace
	// deletes them whatever this says.
	// +optional
	WhenDeleted RetentionPolicy `json:"whenDeleted,omitempty"`

	// whenScaled is what becomes of the volume of a member that is scaled away:
	// Retain keeps it, and a member that is added again later begins with what is on
	// it; Delete deletes it, once the other members are well without it. A shutdown
	// deletes nothing. Default: Retain.
	// +optional
	WhenScaled RetentionPolicy `json:"whenScaled,omitempty"`
}

// ResourceRequirements are the requests and limits of one container: the part
// of core/v1 ResourceRequirements that a database container has a use for.
//
// +kubebuilder:validation:XValidation:rule=`!self.?requests.cpu.hasValue() || !self.?limits.cpu.hasValue() || !string(self.requests.cpu).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || !string(self.limits.cpu).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || quantity(string(self.requests.cpu)).compareTo(quantity(string(self.limits.cpu))) <= 0`,fieldPath=`.requests.cpu`,messageExpression=`"must be at most the limit, " + string(self.limits.cpu) + ": lower the request, or raise spec.resources.limits.cpu"`
// +kubebuilder:validation:XValidation:rule=`!self.?requests.memory.hasValue() || !self.?limits.memory.hasValue() || !string(self.requests.memory).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || !string(self.limits.memory).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || quantity(string(self.requests.memory)).compareTo(quantity(string(self.limits.memory))) <= 0`,fieldPath=`.requests.memory`,messageExpression=`"must be at most the limit, " + string(self.limits.memory) + ": lower the request, or raise spec.resources.limits.memory"`
// +kubebuilder:validation:XValidation:rule=`!self.?requests.ephemeral__dash__storage.hasValue() || !self.?limits.ephemeral__dash__storage.hasValue() || !string(self.requests.ephemeral__dash__storage).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || !string(self.limits.ephemeral__dash__storage).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$') || quantity(string(self.requests.ephemeral__dash__storage)).compareTo(quantity(string(self.limits.ephemeral__dash__storage))) <= 0`,fieldPath=`.requests['ephemeral-storage']`,messageExpression=`"must be at most the limit, " + string(self.limits.ephemeral__dash__storage) + ": lower the request, or raise spec.resources.limits.ephemeral-storage"`
type ResourceRequirements struct {
	// requests is what the scheduler sets aside for each member. Default: of each
	// kind the limit, where that is set, and otherwise nothing.
	// +optional
	Requests *ResourceAmounts `json:"requests,omitempty"`

	// limits is the most that each member may use. Default: no limit.
	// +optional
	Limits *ResourceAmounts `json:"limits,omitempty"`
}

// ResourceAmounts is an amount of each kind of compute resource.
type ResourceAmounts struct {
	// cpu is processor time, in CPUs: 500m is half of one. A fraction needs
	// quotes: "0.5". Default: as said of requests and of limits.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$')`,message=`must be a quantity, as digits and a unit: write for example 500m, or leave the field out`
	CPU *resource.Quantity `json:"cpu,omitempty"`

	// memory is the working memory, in bytes: 512Mi, 2Gi. Above its limit the
	// kernel kills the server. Default: as said of requests and of limits.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$')`,message=`must be a quantity, as digits and a unit: write for example 512Mi, or leave the field out`
	Memory *resource.Quantity `json:"memory,omitempty"`

	// ephemeral-storage is the node's disk space for logs and, in a database
	// without storage, for its data, in bytes: 1Gi. Above its limit the kubelet
	// evicts the member. Default: as said of requests and of limits.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule=`string(self).matches('^[0-9]{1,19}([.][0-9]{1,9})?(m|[kMGTPE]|[KMGTPE]i)?$')`,message=`must be a quantity, as digits and a unit: write for example 1Gi, or leave the field out`
	EphemeralStorage *resource.Quantity `json:"ephemeral-storage,omitempty"`
}

// MemberRole says what a member does.
type MemberRole string

const (
	// MemberRolePrimary is the one member that takes writes.
	MemberRolePrimary MemberRole = "primary"

	// MemberRoleReplica is a member that follows the primary.
	MemberRoleReplica MemberRole = "replica"
)

// DatabaseManagerStatus is what the operator last saw of the database.
type DatabaseManagerStatus struct {
	// observedGeneration is the metadata.generation that the operator acted
	// upon; while it is lower, the rest of the status is of an older spec.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of members that exist, in pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas,omitempty"`

	// readyReplicas is the number of members whose pod is ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`

	// availableReplicas is the number of members that answered the operator's
	// last query with the credentials of the Secret; never more.
	// +optional
	// +kubebuilder:validation:Minimum=0
	AvailableReplicas int32 `json:"availableReplicas,omitempty"`

	// selector selects the pods of the members, in the form of a label query;
	// the scale subresource shows it to autoscalers.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Selector string `json:"selector,omitempty"`

	// currentPrimary is the name of the pod that takes writes; empty while
	// none does.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	CurrentPrimary string `json:"currentPrimary,omitempty"`

	// currentVersion is the engine version that the workload runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	CurrentVersion string `json:"currentVersion,omitempty"`

	// secretName is the name of the Secret with the credentials: host, port,
	// username, password, database and uri.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`

	// members are the members that exist, ordered by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Members []MemberStatus `json:"members,omitempty"`

	// config are the parameters that spec.config sets, ordered by name.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Config []ParameterStatus `json:"config,omitempty"`

	// conditions are Ready, Progressing, Degraded and TransportEncrypted.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemberStatus is one member of a database.
type MemberStatus struct {
	// name is the name of the member's pod.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// role is primary or replica; empty while it isn't known.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Role MemberRole `json:"role,omitempty"`

	// ready tells whether the member answered the operator's last query.
	// +optional
	Ready bool `json:"ready,omitempty"`

	// lag is by how much a replica is behind the primary, at least, when the status
	// was last written: 0s if it isn't, then 1s, 10s, 1m0s, 10m0s, 1h0m0s; empty for
	// the primary, and where it isn't known.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Lag string `json:"lag,omitempty"`
}

// ParameterChange says how a parameter takes effect.
type ParameterChange string

const (
	// ParameterChangeLive is of a parameter that a running server takes.
	ParameterChangeLive ParameterChange = "Live"

	// ParameterChangeRestart is of a parameter for which the members are restarted.
	ParameterChangeRestart ParameterChange = "Restart"
)

// ParameterStatus is what became of one parameter of spec.config.
type ParameterStatus struct {
	// name is the engine's name of the parameter.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// change is Live, if running servers take the value, or Restart, if the members
	// are restarted for it.
	// +required
	// +kubebuilder:validation:MaxLength=16
	Change ParameterChange `json:"change"`

	// inEffect tells whether every member that answers runs with the value.
	// +optional
	InEffect bool `json:"inEffect,omitempty"`
}

// DatabaseManagerList is a list of DatabaseManagers.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type DatabaseManagerList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the DatabaseManagers.
	Items []DatabaseManager `json:"items"`
}
