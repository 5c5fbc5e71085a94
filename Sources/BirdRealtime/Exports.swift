// What the options are made with comes with `import BirdRealtime`.
@_exported public import Dispatch
@_exported public import struct Foundation.TimeInterval
@_exported public import struct Foundation.URL
