package rules

import "time"

// ownTime is the reason for differences of lastConnect.
const ownTime = "a client can wait for the time of one catalog; OLM has one time for all catalogs (decision 39)"

// unusableImage returns the rule about a polled tag that is moved to an image without a usable catalog.
func unusableImage(id, image string) Rule {
	return Rule{
		ID: id, Given: "a catalog polls a tag; the tag is moved to an image " + image,
		Then: "lastConnect and READY stay; Progressing is False and names the cause", Difference: "no condition names the cause", Reason: "users see why the update does not arrive (decision 39)",
	}
}

var lastConnect = Group{Letter: "A", Title: "The time lastConnect of a CatalogSource", Rules: []Rule{
	{
		ID: "A1", Given: "a READY catalog of a ConfigMap gets a new version",
		Then: "within 5 s configMapReference names the ConfigMap's version; within 30 s it is READY with lastConnect after lastUpdateTime; a Subscription made then resolves to the new version",
	},
	{
		ID: "A1-Unlabelled", Given: "as A1, and the ConfigMap was created without the label olm.managed=true",
		Then:       "as A1",
		Difference: "OLM watches only ConfigMaps with the label, and notices the change when it reconciles the CatalogSource for another reason, within 15 minutes",
		Reason:     "users do not know the label (decision 39)",
		Untried:    "the case passes or fails depending on when OLM reconciles the CatalogSource",
	},
	{
		ID: "A2", Given: "as A1, with the old version installed by a Subscription with automatic approval",
		Then: "within 60 s of the new lastConnect, currentCSV is the new version",
	},
	{
		ID: "A3", Given: "the ConfigMap of a READY catalog gets a label",
		Then:       "the catalog is READY with lastConnect after lastUpdateTime, and its pod stays",
		Difference: "any write to the ConfigMap replaces the pod", Reason: "the content is the same (decision 39)",
	},
	{
		ID: "A4", Given: "the ConfigMap of a READY catalog loses a required key",
		Then:       "within 5 s the reason is ConfigMapError; the catalog stays READY with the old content, and lastConnect stays",
		Difference: "the new pod ends with an error, and the catalog is gone", Reason: "a typing error must not stop installations (decision 13)",
	},
	{
		ID: "A5", Given: "as A4, and then the ConfigMap is corrected, with new or with the old content", Then: "within 30 s lastConnect is after lastUpdateTime; reason and message are empty",
		Difference: "the status does not name the error", Reason: warned,
	},
	{ID: "A6", Given: "the ConfigMap of a READY catalog changes three times within two seconds", Then: "within 60 s lastConnect is after lastUpdateTime, and the third content is served"},
	{ID: "A7", Given: "the ConfigMap of a READY catalog is deleted and created again with the same content", Then: "within 5 s configMapReference has its UID; within 30 s lastConnect is after lastUpdateTime"},
	{ID: "A8", Given: "a catalog polls a tag; the tag is moved to another image", Then: "lastConnect does not move before; within the interval and 60 s, it is later than the move"},
	{ID: "A9", Given: "a catalog polls a tag; the same image is pushed again", Then: "lastConnect and READY stay for five intervals; at rest, only status.latestImageRegistryPoll is written, once after each poll"},
	unusableImage("A10-program", "without a program, so that it does not start"),
	unusableImage("A10-broken", "with a catalog that cannot be served"),
	unusableImage("A10-missing", "without a catalog"),
	{ID: "A11", Given: "a catalog polls a tag; the tag is moved to another image with the same packages", Then: "lastConnect moves"},
	{ID: "A12-image", Given: "spec.image of a READY catalog changes", Then: "within 60 s lastConnect moves"},
	{ID: "A12-settings", Given: "spec.grpcPodConfig of a READY catalog changes", Then: "within 60 s lastConnect moves"},
	{ID: "A12-address", Given: "spec.address of a READY catalog changes", Then: "within 60 s it is READY at the new address with a later lastConnect"},
	{
		ID: "A13", Given: "a catalog by address is READY; its server stops, and starts again after 20 s",
		Then: "within 15 s the state is TRANSIENT_FAILURE or CONNECTING; within 15 s after the start it is READY with a later lastConnect",
	},
	{ID: "A14", Given: "the server of a READY catalog by address is restarted within a second", Then: "lastConnect moves, whether or not the state was seen to leave READY"},
	{
		ID: "A15", Given: "the content of a catalog by address changes, and its server announces that; the connection stays",
		Then: "lastConnect moves, and a Subscription resolves to the new content", Difference: "only a connection moves the time", Reason: ownTime,
	},
	{ID: "A16", Given: "a catalog by address whose server announces no content digest; nothing happens", Then: "the CatalogSource is not written", Rest: 10 * time.Minute},
	{
		ID: "A17", Given: "one of two replicas of a catalog is deleted", Then: "it stays READY, and connectionState is written at most once",
		Difference: "a catalog has one pod", Reason: "a lost node must not stop installations (decision 14)",
	},
	{
		ID: "A18", Given: "both replicas of a catalog are deleted", Then: "it leaves READY, is READY again, and lastConnect moves",
		Difference: "a catalog has one pod", Reason: "a lost node must not stop installations (decision 14)",
	},
	{
		ID: "A19", Given: "five catalogs are READY; the manager stops, and starts again after 20 s", Then: "within 30 s lastConnect of each moves, once",
		Difference: "it may move again when another catalog is connected", Reason: ownTime,
		Untried: "the case passes or fails depending on the order of the connections",
	},
	{
		ID: "A20", Given: "five catalogs are READY; the leader is killed, and a supervisor that follows them becomes the leader", Then: "each is written at most once, and the new leader follows changes",
		Difference: "OLM has no second replica that is connected", Reason: "a standby works at once (decision 39)",
		Untried: "OLM has no second replica",
	},
	{
		ID: "A21", Given: "ten catalogs of all types are READY; nothing happens, and then one changes",
		Then: "at rest, only status.latestImageRegistryPoll of a catalog with a poll interval is written, once after each poll; the change writes no other catalog", Difference: "a change of one catalog moves the time of all", Reason: ownTime,
		Rest: 15 * time.Minute,
	},
	{ID: "A22", Given: "a READY CatalogSource gets a display name and an annotation that its pods do not have", Then: "lastConnect and READY stay"},
	{
		ID: "A23", Given: "lastConnect of a READY catalog is a minute in the future", Then: "within 10 s it is not in the future",
		Difference: "it stays until the minute has passed", Reason: ownTime,
	},
	{
		ID: "A23-Standby", Given: "the leader is killed, lastConnect of a READY catalog then is a minute in the future, and another supervisor becomes the leader",
		Then:       "within 40 s it is READY, and lastConnect is not in the future; it stays so",
		Difference: "OLM has no second replica that is connected", Reason: "a standby works at once (decision 39)",
		Untried: "OLM has no second replica",
	},
}}
