//! What a request is about, and what it wants.

macro_rules! numbered {
    ($(#[$about:meta])* $name:ident { $($variant:ident = $number:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub enum $name {
            $($variant = $number,)*
        }

        impl $name {
            /// What a number in a head stands for.
            #[must_use]
            pub fn of(number: u16) -> Option<$name> {
                match number {
                    $($number => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

numbered! {
    /// The kind of resource that a request is about. The names are the protocol's.
    ResourceType {
        Connection = 0x00,
        Database = 0x01,
        Collection = 0x02,
        Document = 0x03,
        Attachment = 0x04,
        User = 0x05,
        Permission = 0x06,
        StoredProcedure = 0x07,
        Conflict = 0x08,
        Trigger = 0x09,
        UserDefinedFunction = 0x0A,
        Offer = 0x0F,
        MasterPartition = 0x12,
        ServerPartition = 0x13,
        DatabaseAccount = 0x14,
        Topology = 0x15,
        PartitionKeyRange = 0x16,
        Schema = 0x18,
        UserDefinedType = 0x1D,
        PartitionKey = 0x20,
        Snapshot = 0x21,
        ClientEncryptionKey = 0x23,
        DistributedTransaction = 0x35,
    }
}

numbered! {
    /// What is to be done with it.
    OperationType {
        Connection = 0x00,
        Create = 0x01,
        Patch = 0x02,
        Read = 0x03,
        ReadFeed = 0x04,
        Delete = 0x05,
        Replace = 0x06,
        ExecuteJavaScript = 0x08,
        SqlQuery = 0x09,
        Query = 0x0F,
        Head = 0x11,
        HeadFeed = 0x12,
        Upsert = 0x13,
        Batch = 0x25,
        QueryPlan = 0x42,
    }
}
